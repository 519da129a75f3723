//! The identity of a machine, and sealed files about it.

use fft_core::{Comm, Error, Reduce};

/// The machine that measurements belong to: processors, ranks and library. Equal on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The model name of rank 0's processor.
    pub processor: String,
    /// The number of hosts.
    pub hosts: usize,
    /// Ranks of the fullest host.
    pub ranks_per_host: usize,
    /// `threads`, or the name that the MPI library gives itself.
    pub library: String,
    /// The version of this crate.
    pub version: String,
}

impl Signature {
    /// The machine that these ranks run on. Collective; the same on every rank.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    pub fn of(comm: &dyn Comm) -> Result<Self, Error> {
        let hosts = comm.topology();
        Ok(Self {
            processor: broadcast_line(comm, &processor())?,
            hosts: hosts.hosts(),
            ranks_per_host: hosts.ranks_per_host(),
            library: broadcast_line(comm, &library(comm))?,
            version: env!("CARGO_PKG_VERSION").into(),
        })
    }

    /// Names and values, each on one line.
    pub fn fields(&self) -> [(&'static str, String); 5] {
        [
            ("processor", self.processor.clone()),
            ("hosts", self.hosts.to_string()),
            ("ranks_per_host", self.ranks_per_host.to_string()),
            ("library", self.library.clone()),
            ("version", self.version.clone()),
        ]
    }

    /// The first field that differs, with this value and the other's.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let pairs = self.fields().into_iter().zip(other.fields());
        let mut differ = pairs.filter(|((_, mine), (_, theirs))| mine != theirs);
        differ.next().map(|((name, mine), (_, theirs))| (name, mine, theirs))
    }
}

/// The FNV-1a hash of a text, the same in every version.
pub fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A text after a first line with a name and the checksum, which is a comment in TOML.
///
/// ```
/// let file = fft_comm::seal("thriffty machine", "cores = 2\n");
/// assert_eq!(fft_comm::unseal("thriffty machine", &file), Some("cores = 2\n"));
/// assert_eq!(fft_comm::unseal("thriffty machine", &file.replace('2', "3")), None);
/// ```
pub fn seal(what: &str, text: &str) -> String {
    format!("# {what} {:016x}\n{text}", checksum(text.as_bytes()))
}

/// The text of a sealed file, if the name and the checksum are right.
pub fn unseal<'a>(what: &str, file: &'a str) -> Option<&'a str> {
    let (first, text) = file.split_once('\n')?;
    (first == format!("# {what} {:016x}", checksum(text.as_bytes()))).then_some(text)
}

/// Broadcasts rank 0's bytes and ignores the bytes of other ranks. Collective.
///
/// # Errors
/// When a rank has gone or the library fails.
pub fn broadcast(comm: &dyn Comm, mine: &[u8]) -> Result<Vec<u8>, Error> {
    let first = comm.rank() == 0;
    let mut len = [if first { mine.len() as f64 } else { 0.0 }];
    comm.allreduce(Reduce::Max, &mut len)?;
    let len = len[0] as usize;
    // As whole numbers that `f64` holds exactly; nothing is added to them.
    let mut words = vec![0.0; len.div_ceil(WORD)];
    if first {
        for (word, bytes) in words.iter_mut().zip(mine.chunks(WORD)) {
            *word = bytes.iter().rev().fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte));
        }
    }
    comm.allreduce(Reduce::Max, &mut words)?;
    let bytes = words.iter().flat_map(|word| (*word as u64).to_le_bytes().into_iter().take(WORD));
    Ok(bytes.take(len).collect())
}

/// Bytes in one number.
const WORD: usize = 6;
/// Letters of a line, at most.
const LETTERS: usize = 120;

/// Broadcasts rank 0's text as one line of limited length. Collective.
///
/// # Errors
/// When a rank has gone or the library fails.
pub fn broadcast_line(comm: &dyn Comm, text: &str) -> Result<String, Error> {
    // Open MPI ends its version string with a zero byte, which TOML does not allow.
    let parts = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words: Vec<&str> = parts.filter(|word| !word.is_empty()).collect();
    let line: String = words.join(" ").chars().take(LETTERS).collect();
    let bytes = broadcast(comm, line.as_bytes())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn processor() -> String {
    let read = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        let (name, value) = line.split_once(':')?;
        ["model name", "Processor", "cpu"].contains(&name.trim()).then(|| value.trim().to_owned())
    };
    read.lines().find_map(named).unwrap_or_else(|| std::env::consts::ARCH.into())
}

fn library(comm: &dyn Comm) -> String {
    #[cfg(feature = "mpi")]
    if comm.name() == "mpi" {
        return crate::mpi::library();
    }
    comm.name().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_0_is_told_to_all_on_one_line() {
        let long = "é".repeat(200);
        let found = crate::threads(3, |comm| {
            let own = format!("rank {}\nof  many\0", comm.rank());
            (broadcast_line(&comm, &own).unwrap(), broadcast_line(&comm, &long).unwrap())
        });
        for (own, cut) in found {
            assert_eq!((own.as_str(), cut), ("rank 0 of many", "é".repeat(LETTERS)));
        }
    }

    #[test]
    fn every_byte_is_broadcast() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        let own = |rank: usize, len| if rank == 0 { &bytes[..len] } else { &bytes[..3] };
        for len in [0, 1, 5, 6, 7, 255, 256] {
            let found = crate::threads(3, |comm| broadcast(&comm, own(comm.rank(), len)).unwrap());
            assert!(found.iter().all(|found| found == &bytes[..len]), "{len}");
        }
    }

    #[test]
    fn signatures_are_of_hosts_and_ranks() {
        let found = crate::threads_on(&[0, 1, 1], |comm| Signature::of(&comm).unwrap());
        let first = &found[0];
        assert!(found.iter().all(|other| other == first));
        assert_eq!((first.hosts, first.ranks_per_host), (2, 2));
        assert!(!first.processor.is_empty() && first.library == "threads");
        let other = Signature { hosts: 3, ..first.clone() };
        assert_eq!(first.difference(&other), Some(("hosts", "2".into(), "3".into())));
        assert_eq!(first.difference(first), None);
    }

    #[test]
    fn a_seal_is_broken_by_any_byte() {
        let file = seal("thriffty test", "a = 1\nb = \"two\"\n");
        for at in 0..file.len() {
            let mut bytes = file.clone().into_bytes();
            bytes[at] ^= 1;
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(unseal("thriffty test", &text), None, "{at}");
            assert_eq!(unseal("thriffty test", &file[..at]), None, "{at}");
        }
    }
}
