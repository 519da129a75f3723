//! Where numbers were measured: what they must not be used without, and how files say it.

use fft_core::{Comm, Error};

/// What a machine is, for those who kept numbers about it: who computes, how many of them, and what carries messages.
/// Equal on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The processor of rank 0, in its maker's words.
    pub processor: String,
    /// Hosts.
    pub hosts: usize,
    /// Ranks of the fullest host.
    pub ranks_per_host: usize,
    /// `threads`, or what the MPI library calls itself.
    pub library: String,
    /// The version of this crate.
    pub version: String,
}

impl Signature {
    /// That of the machine that these ranks run on. Collective; the same on every rank.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    pub fn of(comm: &dyn Comm) -> Result<Self, Error> {
        let mut crews: Vec<(usize, usize)> = Vec::new();
        for rank in 0..comm.size() {
            let host = comm.host(rank);
            match crews.iter_mut().find(|(known, _)| *known == host) {
                Some((_, ranks)) => *ranks += 1,
                None => crews.push((host, 1)),
            }
        }
        Ok(Self {
            processor: told(comm, &processor())?,
            hosts: crews.len(),
            ranks_per_host: crews.iter().map(|(_, ranks)| *ranks).max().unwrap_or(1),
            library: told(comm, &library(comm))?,
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

    /// The first field in which another differs, with both values: this one's first.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let pairs = self.fields().into_iter().zip(other.fields());
        let mut differ = pairs.filter(|((_, mine), (_, theirs))| mine != theirs);
        differ.next().map(|((name, mine), (_, theirs))| (name, mine, theirs))
    }
}

/// A number for a text that changes when any byte of it does, the same in every version: FNV-1a.
///
/// ```
/// assert_eq!(fft_comm::checksum(b""), 0xcbf2_9ce4_8422_2325);
/// assert_ne!(fft_comm::checksum(b"ab"), fft_comm::checksum(b"ba"));
/// ```
pub fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A text under a first line that names what it is, and its checksum: a comment in TOML.
///
/// ```
/// let file = fft_comm::seal("thriffty machine", "cores = 2\n");
/// assert_eq!(fft_comm::unseal("thriffty machine", &file), Some("cores = 2\n"));
/// assert_eq!(fft_comm::unseal("thriffty machine", &file.replace('2', "3")), None);
/// assert_eq!(fft_comm::unseal("thriffty wisdom", &file), None);
/// ```
pub fn seal(what: &str, text: &str) -> String {
    format!("# {what} {:016x}\n{text}", checksum(text.as_bytes()))
}

/// The text under such a line, where it is what was sealed.
pub fn unseal<'a>(what: &str, file: &'a str) -> Option<&'a str> {
    let (first, text) = file.split_once('\n')?;
    (first == format!("# {what} {:016x}", checksum(text.as_bytes()))).then_some(text)
}

/// Bytes of a text that travel between ranks.
const TEXT: usize = 256;

/// Rank 0's text on one line, as far as it fits into 256 bytes. Collective.
///
/// # Errors
/// When a rank has gone or the library fails.
pub(crate) fn told(comm: &dyn Comm, text: &str) -> Result<String, Error> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let mut mine = [0u8; TEXT];
    // Half a letter at the end is left out below.
    mine.iter_mut().zip(line.bytes()).for_each(|(place, byte)| *place = byte);
    let mut all = vec![0; TEXT * comm.size()];
    comm.allgather(&mine, &mut all)?;
    let first = &all[..TEXT];
    let end = first.iter().position(|byte| *byte == 0).unwrap_or(TEXT);
    Ok(String::from_utf8_lossy(&first[..end]).trim_end_matches('\u{fffd}').to_owned())
}

/// The processor of this rank.
pub(crate) fn processor() -> String {
    let read = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        let (name, value) = line.split_once(':')?;
        ["model name", "Processor", "cpu"].contains(&name.trim()).then(|| value.trim().to_owned())
    };
    read.lines().find_map(named).unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// What carries messages.
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
    fn rank_0_is_told_to_all_and_long_texts_end_with_a_whole_letter() {
        let long = "é".repeat(200);
        let found = crate::threads(3, |comm| {
            let own = format!("rank {}\nof  many", comm.rank());
            (told(&comm, &own).unwrap(), told(&comm, &long).unwrap())
        });
        for (own, cut) in found {
            assert_eq!((own.as_str(), cut), ("rank 0 of many", "é".repeat(128)));
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
