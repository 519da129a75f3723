//! Machine files with a signature of where they were measured.

use std::path::Path;

use fft_comm::{Signature, broadcast_line, seal, unseal};
use fft_core::{Comm, Error, Machine};
#[cfg(feature = "cuda")]
use fft_gpu::Gpu;

use super::named::{NAMES, named, parse, unreadable};
use crate::tuning;

/// The first words of a file.
const KIND: &str = "thriffty machine";

/// Writes a machine to a file, with the signature of these ranks. Collective. The file is replaced
/// as a whole.
///
/// The signature consists of comments: a checksum of the rest, the processor, the numbers of hosts
/// and ranks, the library that carries messages, and the version of this one; for a machine of GPUs
/// also the GPU.
///
/// ```
/// use thriffty::machine;
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("machine.toml");
/// thriffty::threads(2, |world| {
///     let machine = machine::named("ethernet")?;
///     machine::save(&world, &machine, &path)?;
///     assert_eq!(machine::load(&world, &path)?, Some(machine));
///     Ok::<(), thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
///
/// # Errors
/// On every rank: [`Error::OnRank`] when the file cannot be written.
pub fn save(comm: &dyn Comm, machine: &Machine, path: impl AsRef<Path>) -> Result<(), Error> {
    let signature = Signature::of(comm)?;
    tuning::replace(comm, path.as_ref(), || signed(machine, &signature))
}

fn signed(machine: &Machine, signature: &Signature) -> String {
    let fields = signature.fields().map(|(name, value)| format!("# {name}: {value}\n"));
    let machine = toml::to_string(machine).expect("numbers and names are TOML");
    seal(KIND, &format!("{}\n{machine}", fields.concat()))
}

/// The machine in a file, if its signature matches these ranks; otherwise `None`, with a warning.
/// For files that the user did not name. Collective; the same on every rank.
///
/// # Errors
/// When a rank has gone or the library fails.
pub fn load(comm: &dyn Comm, path: impl AsRef<Path>) -> Result<Option<Machine>, Error> {
    load_for(comm, None, path.as_ref())
}

/// As [`load`], for plans on GPUs: the machine of this one. Collective.
///
/// # Errors
/// As [`load`].
#[cfg(feature = "cuda")]
pub fn load_on_device(
    comm: &dyn Comm,
    gpu: &Gpu,
    path: impl AsRef<Path>,
) -> Result<Option<Machine>, Error> {
    let gpu = broadcast_line(comm, &gpu.name())?;
    load_for(comm, Some(&gpu), path.as_ref())
}

fn load_for(comm: &dyn Comm, gpu: Option<&str>, path: &Path) -> Result<Option<Machine>, Error> {
    let here = Signature::of(comm)?;
    let found = tuning::read(comm, path)?;
    let found = found.and_then(|text| {
        let parsed = parse(&path.display().to_string(), &text).map_err(|error| error.to_string());
        let machine = doubt(&text, &here).map_or(parsed, Err)?;
        other_processor(&machine, gpu).map_or(Ok(machine), Err)
    });
    if let Err(why) = &found
        && comm.rank() == 0
    {
        log::warn!("machine file {} is ignored: {why}", path.display());
    }
    Ok(found.ok())
}

/// The machine that the user named: one of [`NAMES`], or a file. If the signature is of another
/// machine, or does not match the file, there is a warning. Rank 0's name counts. Collective; the
/// same on every rank.
///
/// # Errors
/// On every rank: [`Error::Argument`] when it is neither a name nor a file, or no machine is in it.
pub fn read(comm: &dyn Comm, name_or_path: impl AsRef<Path>) -> Result<Machine, Error> {
    read_for(comm, None, name_or_path.as_ref())
}

/// As [`read`], for plans on GPUs. There is a warning if the GPU is another one. Collective.
///
/// # Errors
/// As [`read`].
#[cfg(feature = "cuda")]
pub fn read_on_device(
    comm: &dyn Comm,
    gpu: &Gpu,
    name_or_path: impl AsRef<Path>,
) -> Result<Machine, Error> {
    let gpu = broadcast_line(comm, &gpu.name())?;
    read_for(comm, Some(&gpu), name_or_path.as_ref())
}

fn read_for(comm: &dyn Comm, gpu: Option<&str>, path: &Path) -> Result<Machine, Error> {
    let name = broadcast_line(comm, &path.to_string_lossy())?;
    if NAMES.contains(&name.as_str()) {
        return named(&name);
    }
    let (here, file) = (Signature::of(comm)?, path.display().to_string());
    let text = tuning::read(comm, path)?.map_err(|why| unreadable(&file, why))?;
    let machine = parse(&file, &text)?;
    // Files that were written by hand have no signature.
    if comm.rank() == 0
        && text.starts_with(&format!("# {KIND} "))
        && let Some(why) = doubt(&text, &here).or_else(|| other_processor(&machine, gpu))
    {
        log::warn!("machine file {file} is used, but {why}");
    }
    Ok(machine)
}

/// Why these numbers may not be this machine's.
fn doubt(text: &str, here: &Signature) -> Option<String> {
    let Some(signed) = unseal(KIND, text) else {
        return Some("its checksum is not that of what it says".into());
    };
    let of = |name: &str| {
        let value = |line: &'_ str| {
            line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned)
        };
        signed.lines().take_while(|line| line.starts_with('#')).find_map(value)
    };
    here.fields().into_iter().find_map(|(name, value)| {
        let found = of(name).unwrap_or_else(|| "nothing".into());
        (found != value).then(|| format!("its {name} is `{found}`, here it is `{value}`"))
    })
}

/// Why the numbers may not apply to a plan on this GPU; `None` is the host's processor.
fn other_processor(machine: &Machine, gpu: Option<&str>) -> Option<String> {
    let name = |gpu: Option<&str>| gpu.map_or_else(|| "none".into(), |gpu| format!("`{gpu}`"));
    let found = machine.gpu.as_deref();
    (found != gpu).then(|| format!("its GPU is {}, the plan's is {}", name(found), name(gpu)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two ranks load and read of a text.
    fn of(text: &str) -> (Option<Machine>, Result<Machine, Error>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.toml");
        std::fs::write(&path, text).unwrap();
        let found = fft_comm::threads(2, |comm| (load(&comm, &path).unwrap(), read(&comm, &path)));
        assert_eq!(found[0], found[1]);
        found.into_iter().next().unwrap()
    }

    fn machine() -> Machine {
        let mut machine = Machine { name: "of a test".into(), ..Machine::default() };
        machine.lines.f32.radices = vec![(2, 0.1), (5, 1e-9 / 3.0)];
        machine.lines.f64.longest = 0;
        machine
    }

    fn saved(ranks: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.toml");
        fft_comm::threads(ranks, |comm| save(&comm, &machine(), &path).unwrap());
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn what_was_saved_is_loaded_bit_by_bit() {
        assert_eq!(of(&saved(2)), (Some(machine()), Ok(machine())));
    }

    #[test]
    fn a_name_is_read_on_all_ranks_and_another_is_refused_on_all() {
        let found = fft_comm::threads(2, |comm| {
            assert_eq!(read(&comm, "summit"), named("summit"));
            // Rank 0's name counts.
            let other = ["frontier", "/nowhere"][comm.rank()];
            assert_eq!(read(&comm, other), named("frontier"));
            read(&comm, "titan").unwrap_err().to_string()
        });
        assert!(
            found[0] == found[1] && found[0].ends_with("frontier, ethernet, h200"),
            "{found:?}"
        );
    }

    #[test]
    fn of_other_ranks_it_is_not_loaded_but_read() {
        let (loaded, read) = of(&saved(3));
        assert_eq!((loaded, read.is_ok()), (None, true));
        let other = saved(2).replace("processor: ", "processor: another ");
        let (_, body) = other.split_once('\n').unwrap();
        let (loaded, read) = of(&seal(KIND, body));
        assert_eq!((loaded, read.is_ok()), (None, true));
    }

    #[test]
    fn a_machine_of_a_gpu_is_loaded_for_that_gpu_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.toml");
        let machine = Machine { gpu: Some("H100".into()), ..machine() };
        fft_comm::threads(2, |comm| {
            save(&comm, &machine, &path).unwrap();
            let loaded = |gpu| load_for(&comm, gpu, &path).unwrap();
            assert_eq!(loaded(Some("H100")), Some(machine.clone()));
            assert_eq!([loaded(None), loaded(Some("H200"))], [None, None]);
            assert_eq!(load(&comm, &path).unwrap(), None);
            assert_eq!(read(&comm, &path).unwrap(), machine);
            assert_eq!(read_for(&comm, Some("H200"), &path).unwrap(), machine);
        });
        let why = |gpu| other_processor(&machine, gpu);
        assert_eq!(why(Some("H100")), None);
        assert_eq!(why(None).unwrap(), "its GPU is `H100`, the plan's is none");
        let host = other_processor(&Machine::default(), Some("H100")).unwrap();
        assert_eq!(host, "its GPU is none, the plan's is `H100`");
    }

    #[test]
    fn changed_by_hand_it_is_not_loaded_but_read() {
        let text = saved(2).replace("of a test", "of a toast");
        let (loaded, read) = of(&text);
        assert_eq!((loaded, read.unwrap().name.as_str()), (None, "of a toast"));
        let unsigned: String =
            text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let (loaded, read) = of(&unsigned);
        assert_eq!((loaded, read.is_ok()), (None, true));
    }

    #[test]
    fn cut_off_or_damaged_anywhere_it_is_not_loaded_and_nothing_panics() {
        let text = saved(1);
        let here = fft_comm::threads(1, |comm| Signature::of(&comm).unwrap()).remove(0);
        assert_eq!(doubt(&text, &here), None);
        for at in 0..text.len() {
            assert!(doubt(&text[..at], &here).is_some(), "cut off at {at}");
            let _ = parse("", &text[..at]);
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let damaged = String::from_utf8(bytes).unwrap();
            assert!(doubt(&damaged, &here).is_some(), "damaged at {at}");
            let _ = parse("", &damaged);
        }
    }
}
