//! Samples, their spectra, and the self-check.

use crate::common::{Folder, load, threads};

#[test]
fn the_energy_of_the_taylor_green_vortex_is_an_eighth() {
    for (ranks, n, precision, least) in [
        (1, "16", "f64", 1e-14),
        (2, "9", "f64", 1e-14),
        (3, "12", "f32", 1e-6),
        (4, "3", "f64", 1e-14),
    ] {
        let folder = Folder::new();
        let out = folder.at("deep/tg");
        let args = ["sample", "taylor-green", "--n", n, "--out", &out, "--precision", precision];
        threads(ranks, &args).ok();
        let files = ["u", "v", "w"].map(|name| folder.at(&format!("deep/tg/{name}.npy")));
        let (csv, svg) = (folder.at("e.csv"), folder.at("e.svg"));
        let [u, v, w] = &files;
        let args = ["spectrum", u, v, w, "--csv", &csv, "--svg", &svg];
        let text = threads(5 - ranks, &args).ok();
        assert!(text.contains("E(k)") && text.contains("relative difference"), "{text}");
        let csv = std::fs::read_to_string(csv).unwrap();
        let mut rows = csv.lines();
        assert_eq!(rows.next(), Some("k,E"));
        let energies: Vec<f64> =
            rows.map(|row| row.split_once(',').unwrap().1.parse().unwrap()).collect();
        assert!((energies.iter().sum::<f64>() - 0.125).abs() < least, "{energies:?}");
        // All of it has |k| = √3.
        assert!((energies[2] - 0.125).abs() < least);
        assert!(std::fs::read_to_string(svg).unwrap().contains("</svg>"));
    }
}

#[test]
fn the_energy_that_is_printed_is_that_of_the_files() {
    let folder = Folder::new();
    for n in ["1", "2", "3", "4", "7"] {
        for precision in ["f32", "f64"] {
            let args = ["sample", "taylor-green", "--n", n, "--out", &folder.at("")];
            let line = threads(2, &[&args[..], &["--precision", precision]].concat()).ok();
            let (_, said) = line.trim_end().rsplit_once(", energy ").unwrap();
            let files = ["u.npy", "v.npy", "w.npy"].map(|name| folder.at(name));
            let [u, v, w] = &files;
            let csv = folder.at("e.csv");
            threads(1, &["spectrum", u, v, w, "--csv", &csv]).ok();
            let csv = std::fs::read_to_string(csv).unwrap();
            let held = csv.lines().skip(1).map(|row| row.split_once(',').unwrap().1);
            let held: f64 = held.map(|energy| energy.parse::<f64>().unwrap()).sum();
            assert!((said.parse::<f64>().unwrap() - held).abs() <= 1e-6, "{line} {held}");
            let expected = if n == "1" || n == "2" { "0" } else { "0.125" };
            assert_eq!(said, expected, "{line}");
        }
    }
}

#[test]
fn the_taylor_green_vortex_has_its_values() {
    let folder = Folder::new();
    let args = ["sample", "taylor-green", "--n", "8", "--out", &folder.at(""), "--ranks", "3"];
    threads(3, &args[..6]).ok();
    let turn = |i: usize| std::f64::consts::TAU * i as f64 / 8.0;
    let (_, u) = load(&folder.at("u.npy"));
    let (_, v) = load(&folder.at("v.npy"));
    for (i, j, k) in [(0, 0, 0), (1, 2, 3), (2, 7, 4), (7, 7, 7)] {
        let at = (i * 8 + j) * 8 + k;
        let [x, y, z] = [turn(i), turn(j), turn(k)];
        assert!((u[at] - x.sin() * y.cos() * z.cos()).abs() < 1e-15);
        assert!((v[at] + x.cos() * y.sin() * z.cos()).abs() < 1e-15);
    }
}

#[test]
fn a_spectrum_of_any_real_file_keeps_its_energy() {
    let folder = Folder::new();
    for (fortran, shape) in
        [(true, &[6, 5][..]), (false, &[17]), (true, &[4, 3, 5]), (false, &[2, 3, 4, 5])]
    {
        let path = folder.array("x.npy", "<f8", fortran, shape);
        for ranks in [1, 3] {
            let text = threads(ranks, &["spectrum", &path]).ok();
            let (_, difference) = text.trim_end().rsplit_once(' ').unwrap();
            assert!(difference.parse::<f64>().unwrap() < 1e-14, "{text}");
        }
    }
}

/// One file of three components has the spectrum of three files.
#[test]
fn components_may_be_an_axis_of_a_file() {
    let folder = Folder::new();
    let energies = |args: &[&str]| {
        let csv = folder.at("e.csv");
        threads(2, &[&["spectrum", "--csv", &csv], args].concat()).ok();
        let csv = std::fs::read_to_string(csv).unwrap();
        let rows = csv.lines().skip(1).map(|row| row.split_once(',').unwrap().1);
        rows.map(|energy| energy.parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    for fortran in [false, true] {
        let whole = folder.array("whole.npy", "<f8", fortran, &[3, 4, 5, 6]);
        let (_, values) = load(&whole);
        let sums: Vec<f64> = (0..3)
            .map(|component| {
                let is_own = |at: &usize| {
                    if fortran { at % 3 == component } else { at / 120 == component }
                };
                let own = (0..360).filter(is_own).map(|at| values[at].powi(2));
                0.5 * own.sum::<f64>() / 120.0
            })
            .collect();
        let found = energies(&[&whole, "--vector"]);
        assert!((found.iter().sum::<f64>() - sums.iter().sum::<f64>()).abs() < 1e-14);
        let four_axes = energies(&[&whole]);
        assert_ne!(found, four_axes);
    }
    let one = folder.array("one.npy", "<f8", false, &[8]);
    assert!(threads(1, &["spectrum", &one, "--vector"]).complaint().contains("found one axis"));
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let real = folder.array("real.npy", "<f8", false, &[6, 5]);
    let other = folder.array("other.npy", "<f8", false, &[5, 6]);
    let complex = folder.array("complex.npy", "<c16", false, &[6, 5]);
    let nowhere = folder.at("nowhere/x.svg");
    let inside = folder.at("real.npy/x");
    let missing = folder.at("missing.npy");
    for args in [
        &["spectrum"][..],
        &["spectrum", &missing],
        &["spectrum", &complex],
        &["spectrum", &real, &other],
        &["spectrum", &real, "--svg", &nowhere],
        &["spectrum", &real, "--csv", &nowhere],
        &["sample", "taylor-green", "--n", "8"],
        &["sample", "taylor-green", "--n", "0", "--out", &nowhere],
        &["sample", "taylor-green", "--n", "8", "--out", &inside],
        &["sample", "vortex", "--n", "8", "--out", &nowhere],
    ] {
        threads(3, args).complaint();
    }
    assert_eq!(folder.names(), ["complex.npy", "other.npy", "real.npy"]);
}

#[test]
fn an_installation_verifies_itself() {
    for ranks in [1, 3, 4] {
        let text = threads(ranks, &["verify", "--quick"]).ok();
        let (checks, last) = text.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(last, format!("{} checks, all ok", checks.lines().count()));
        assert!(checks.lines().all(|line| line.starts_with("ok   ")), "{text}");
    }
}
