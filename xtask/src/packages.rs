//! Debian packages: what is missing, and its installation.

use crate::tools::{self, command, on_path};
use std::path::Path;
use std::process::Command;

/// A tool or library, and its Debian packages.
pub(crate) struct Need {
    pub(crate) name: &'static str,
    pub(crate) packages: &'static [&'static str],
    pub(crate) present: fn() -> bool,
}

/// MPI to build and run with. Builds generate the MPI bindings with libclang.
pub(crate) const MPI: [Need; 3] = [
    Need { name: "mpirun", packages: &["openmpi-bin"], present: || on_path("mpirun") },
    Need { name: "mpicc", packages: &["libopenmpi-dev"], present: || on_path("mpicc") },
    Need { name: "libclang", packages: &["libclang-dev"], present: has_libclang },
];

/// For `python3 -m venv`, which Debian's python3 lacks.
pub(crate) const PYTHON: Need = Need {
    name: "python3 with venv",
    packages: &["python3-venv"],
    present: || tools::succeeds(command("python3").args(["-c", "import venv, ensurepip"])),
};

/// FFTW for the benchmarks.
pub(crate) const FFTW: Need = Need {
    name: "FFTW with MPI",
    packages: &["libfftw3-dev", "libfftw3-mpi-dev"],
    present: || has_header("fftw3-mpi.h"),
};

/// Tools for programs in other languages.
pub(crate) const COMPILERS: [Need; 6] = [
    Need { name: "g++", packages: &["g++"], present: || on_path("c++") },
    Need { name: "gfortran", packages: &["gfortran"], present: || on_path("gfortran") },
    Need { name: "cmake", packages: &["cmake"], present: || on_path("cmake") },
    Need { name: "pkg-config", packages: &["pkg-config"], present: || on_path("pkg-config") },
    Need { name: "valgrind", packages: &["valgrind"], present: || on_path("valgrind") },
    Need { name: "FFTW", packages: &["libfftw3-dev"], present: || has_header("fftw3.h") },
];

/// Installs what is missing, if permitted, and prints what is still missing.
pub(crate) fn ensure(needs: &[&Need]) {
    let missing = absent(needs);
    if missing.is_empty() {
        return;
    }
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    if let Some(privilege) = privilege() {
        println!("installing {}", packages.join(" "));
        install(privilege, &packages);
    }
    let missing = absent(needs);
    if !missing.is_empty() {
        println!("{}", advice(&missing));
    }
}

fn absent<'n>(needs: &[&'n Need]) -> Vec<&'n Need> {
    needs.iter().filter(|need| !(need.present)()).copied().collect()
}

/// One line: what is missing, and the command that installs it.
fn advice(missing: &[&Need]) -> String {
    let names: Vec<&str> = missing.iter().map(|need| need.name).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    format!(
        "not available: {}; on Debian: sudo apt-get install -y --no-install-recommends {}",
        names.join(", "),
        packages.join(" ")
    )
}

/// The words before apt-get: none for root, `sudo` if it needs no password; `None` without either.
fn privilege() -> Option<&'static [&'static str]> {
    if !on_path("apt-get") {
        None
    } else if tools::output(command("id").arg("-u")).is_ok_and(|id| id == "0") {
        Some(&[])
    } else if tools::succeeds(command("sudo").args(["-n", "true"])) {
        Some(&["sudo", "-n"])
    } else {
        None
    }
}

/// A failure is only printed, because the caller checks again for what is missing.
fn install(privilege: &[&str], packages: &[&str]) {
    let apt = |arguments: &[&str]| {
        let words = [privilege, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments];
        let words = words.concat();
        let mut apt: Command = command(words[0]);
        if let Err(why) = tools::run(apt.args(&words[1..])) {
            println!("{why}");
        }
    };
    apt(&["update", "-qq"]);
    apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat());
}

fn has_header(name: &str) -> bool {
    let folders = ["/usr/include", "/usr/local/include"];
    folders.iter().any(|folder| Path::new(folder).join(name).is_file())
}

/// The library that bindgen loads, and the compiler's headers, which `mpi.h` includes.
fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let llvm = matching("/usr/lib", |name| name.starts_with("llvm"));
    let below_llvm = |part: &str| llvm.iter().map(|l| format!("{l}/{part}")).collect::<Vec<_>>();

    let multiarch = matching("/usr/lib", |name| name.ends_with("-linux-gnu"));
    let system = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(String::from);
    let libraries = [below_llvm("lib"), multiarch, system.to_vec()].concat();
    let is_libclang = |name: &str| {
        name.starts_with("libclang.so") || (name.starts_with("libclang-") && name.contains(".so"))
    };

    let system = ["/usr/lib/clang", "/usr/lib64/clang"].map(String::from);
    let compilers = [below_llvm("lib/clang"), system.to_vec()].concat();
    libraries.iter().any(|folder| !matching(folder, is_libclang).is_empty())
        && compilers
            .iter()
            .flat_map(|folder| matching(folder, |_| true))
            .any(|version| Path::new(&version).join("include/stddef.h").is_file())
}

/// The entries of a folder whose names fit; none without the folder.
fn matching(folder: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| fits(name))
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_one_line_with_every_package() {
        let advice = advice(&[&MPI[0], &FFTW]);
        assert_eq!(
            advice,
            "not available: mpirun, FFTW with MPI; on Debian: sudo apt-get install -y \
             --no-install-recommends openmpi-bin libfftw3-dev libfftw3-mpi-dev"
        );
    }

    #[test]
    fn only_what_is_absent_is_asked_for() {
        let here = Need { name: "here", packages: &["a"], present: || true };
        let away = Need { name: "away", packages: &["b"], present: || false };
        let missing = absent(&[&here, &away]);
        assert_eq!(missing.iter().map(|need| need.name).collect::<Vec<_>>(), ["away"]);
    }

    #[test]
    fn a_missing_folder_has_no_entries() {
        assert!(matching("/no/such/folder", |_| true).is_empty());
    }
}
