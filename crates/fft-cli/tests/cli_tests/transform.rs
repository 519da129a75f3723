//! Transforms of files: there and back again, and everything that can be wrong with them.

use crate::common::{Folder, load, threads, wrong_transforms};

#[test]
fn there_and_back_again() {
    let folder = Folder::new();
    let (hat, back) = (folder.at("hat.npy"), folder.at("back.npy"));
    for (kind, descr) in [("r2c", "<f8"), ("c2c", "<c16"), ("dct2", "<f8"), ("dst4", "<f8")] {
        for (fortran, shape) in
            [(false, &[6, 5, 7][..]), (true, &[5, 8]), (true, &[3, 2, 3, 5]), (false, &[31])]
        {
            let input = folder.array("in.npy", descr, fortran, shape);
            let last = shape[shape.len() - 1].to_string();
            for (ranks, scale) in [(1, None), (2, Some("symmetric")), (3, None), (4, None)] {
                let scales = |option| scale.map_or(vec![], |scale| vec![option, scale]);
                let there = ["transform", kind, &input, &hat];
                threads(ranks, &[&there[..], &scales("--forward-scale")].concat()).ok();
                let mut again = vec!["transform", kind, &hat, &back, "--inverse"];
                again.extend(scales("--inverse-scale"));
                if kind == "r2c" {
                    again.extend(["--last", &last]);
                }
                threads(5 - ranks, &again).ok();
                let ((before, x), (after, y)) = (load(&input), load(&back));
                assert_eq!(before.trim_end(), after.trim_end());
                assert_eq!(x.len(), y.len());
                let difference: f64 = x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum();
                let whole: f64 = x.iter().map(|x| x * x).sum();
                assert!((difference / whole).sqrt() < 2e-15, "{kind} {shape:?} {ranks}");
            }
        }
    }
    assert_eq!(folder.names(), ["back.npy", "hat.npy", "in.npy"]);
}

#[test]
fn any_bricks_give_the_same_numbers() {
    let folder = Folder::new();
    let input = folder.array("in.npy", "<f8", false, &[6, 5, 7]);
    let out = |name: &str| folder.at(name);
    threads(4, &["transform", "r2c", &input, &out("slabs.npy")]).ok();
    let grids = ["--input-grid", "1x2x2", "--output-grid", "2x1x2"];
    threads(4, &[&["transform", "r2c", &input, &out("bricks.npy")], &grids[..]].concat()).ok();
    let ((a, x), (b, y)) = (load(&out("slabs.npy")), load(&out("bricks.npy")));
    assert_eq!(a, b);
    let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= 1e-15 * largest));
}

#[test]
fn a_file_can_be_transformed_onto_itself() {
    let folder = Folder::new();
    let input = folder.array("in.npy", "<f8", false, &[4, 6]);
    let (header, before) = load(&input);
    for inverse in [None, Some("--inverse")] {
        let args: Vec<_> =
            ["transform", "dct4", &input, &input].into_iter().chain(inverse).collect();
        threads(2, &args).ok();
    }
    let (after_header, after) = load(&input);
    assert_eq!(header.trim_end(), after_header.trim_end());
    assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-15));
}

#[test]
fn other_numbers_are_converted() {
    let folder = Folder::new();
    let (plain, other) = (folder.array("plain.npy", "<f8", false, &[6, 5]), folder.at("other.npy"));
    let (one, two) = (folder.at("one.npy"), folder.at("two.npy"));
    let bytes = std::fs::read(&plain).unwrap();
    let numbers: Vec<f64> = load(&plain).1.iter().map(|x| (x * 100.0).round()).collect();
    let save = |path: &str, descr: &str, data: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes[10..128]).replace("<f8", descr);
        std::fs::write(path, [&bytes[..10], text.as_bytes(), &data].concat()).unwrap();
    };
    save(&plain, "<f8", numbers.iter().flat_map(|x| x.to_le_bytes()).collect());
    let small = numbers.iter().map(|x| *x as i8);
    for (descr, data) in [
        (">f8", numbers.iter().flat_map(|x| x.to_be_bytes()).collect::<Vec<u8>>()),
        ("|i1", small.clone().flat_map(i8::to_le_bytes).collect()),
        (">i4", small.clone().flat_map(|x| i32::from(x).to_be_bytes()).collect()),
        ("<i8", small.clone().flat_map(|x| i64::from(x).to_le_bytes()).collect()),
    ] {
        save(&other, descr, data);
        for kind in ["r2c", "c2c", "dct2"] {
            for ranks in [1, 3] {
                threads(ranks, &["transform", kind, &plain, &one]).ok();
                let line = threads(ranks, &["transform", kind, &other, &two]).ok();
                assert!(line.contains(descr), "{line}");
                let same = std::fs::read(&one).unwrap() == std::fs::read(&two).unwrap();
                assert!(same, "{descr} {kind} {ranks}");
            }
        }
    }
    threads(2, &["spectrum", &other]).ok();
}

#[test]
fn each_axis_may_have_its_own_kind() {
    let shape = ["6x5x7"];
    for (kind, kinds) in [
        ("r2c", "dct2,r2c,none"),
        ("r2c", "r2c,dst3,c2c"),
        ("c2c", "none,c2c,dct4"),
        ("dct2", "dct1,none,dst2"),
        ("dct2", "none,none,none"),
    ] {
        for ranks in [1, 3] {
            let args = [&["bench", kind], &shape[..], &["--kinds", kinds, "--check", "--json"]];
            let found = threads(ranks, &args.concat()).ok();
            let found: serde_json::Value = serde_json::from_str(&found).unwrap();
            assert_eq!(found["problem"], format!("{kinds} 6x5x7"));
            assert!(found["error"]["forward"].as_f64().unwrap() < 1e-14, "{found}");
        }
        let plan = threads(4, &["plan", kind, shape[0], "--kinds", kinds]).ok();
        assert!(plan.starts_with('(') && plan.contains(" 6x5x7 f64 ranks=4 "), "{plan}");
    }
    let folder = Folder::new();
    let input = folder.array("in.npy", "<f8", true, &[6, 5, 7]);
    let (hat, back) = (folder.at("hat.npy"), folder.at("back.npy"));
    let kinds = ["--kinds", "dct2,r2c,none"];
    threads(3, &[&["transform", "r2c", &input, &hat], &kinds[..]].concat()).ok();
    assert!(load(&hat).0.contains("(6, 3, 7)"));
    let again = ["transform", "r2c", &hat, &back, "--inverse", "--last", "5"];
    threads(2, &[&again[..], &kinds].concat()).ok();
    let far =
        load(&input).1.iter().zip(&load(&back).1).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(far < 1e-14, "{far:e}");
    for (kind, kinds) in [
        ("r2c", "dct2,r2c"),
        ("r2c", "dct2,dct2,none"),
        ("r2c", "r2c,r2c,none"),
        ("c2c", "c2c,r2c,c2c"),
        ("dct2", "dct2,r2c,none"),
        ("dct2", "dct2,c2c,none"),
        ("r2c", "c2c,,r2c"),
    ] {
        for args in [&["bench", kind, "6x5x7"][..], &["transform", kind, &input, &hat]] {
            threads(2, &[args, &["--kinds", kinds]].concat()).complaint();
        }
    }
}

#[test]
fn one_line_says_what_was_done() {
    let folder = Folder::new();
    let (input, out) = (folder.array("in.npy", "<f4", true, &[4, 6]), folder.at("out.npy"));
    let line = threads(3, &["transform", "r2c", &input, &out]).ok();
    assert!(line.starts_with("r2c 4x6 <f4 -> 4x4 <c8, 3 ranks (threads): plan "), "{line}");
    assert_eq!(line.lines().count(), 1);
    let object = threads(3, &["transform", "r2c", &input, &out, "--json"]).ok();
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["output"]["shape"], serde_json::json!([4, 4]));
    assert_eq!(object["fortran_order"], true);
    assert!(object["seconds"]["write"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_is_wrong_is_said_once_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let lines = wrong_transforms(&folder);
    let before = folder.names();
    for line in &lines {
        let args: Vec<&str> =
            std::iter::once("transform").chain(line.iter().map(|s| &**s)).collect();
        for ranks in [1, 3] {
            let run = threads(ranks, &args);
            run.complaint();
            assert_eq!((run.stdout.as_str(), run.stderr.lines().count()), ("", 1), "{run:?}");
            assert_eq!(folder.names(), before, "{line:?}");
        }
    }
}
