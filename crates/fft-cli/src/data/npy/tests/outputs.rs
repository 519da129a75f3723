use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

#[test]
fn the_final_name_appears_with_the_commit() {
    for has_name in [true, false] {
        let (folder, path) = place();
        let header = Header::new(&[2, 3], Dtype::F64, false);
        let output = Output::create(&path, &header, has_name).unwrap();
        // File systems need not have files without names.
        let names = entries(&folder);
        let temporary = |name: &String| name.starts_with(".rho.npy.") && name.ends_with(".tmp");
        assert!(names.len() <= 1 && (!has_name || names.len() == 1), "{names:?}");
        assert!(names.iter().all(temporary), "{names:?}");
        // The new file is whole from the start.
        assert_eq!(Header::open(&output.open_by()).unwrap(), header);
        output.commit().unwrap();
        assert_eq!(entries(&folder), ["rho.npy"]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 128 + 48);
    }
}

#[test]
fn without_a_commit_nothing_changes() {
    for has_name in [true, false] {
        let (folder, path) = place();
        fs::write(&path, "what was here before").unwrap();
        let header = Header::new(&[2, 3], Dtype::F64, false);
        let output = Output::create(&path, &header, has_name).unwrap();
        write_brick(&output.open_by(), &header, &[0, 0], &[2, 3], &[1.0; 6]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "what was here before");
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "what was here before");
        assert_eq!(entries(&folder), ["rho.npy"]);
    }
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    for has_name in [true, false] {
        let (folder, path) = place();
        let header = Header::new(&[2], Dtype::F64, false);
        let output = Output::create(&path, &header, has_name).unwrap();
        fs::create_dir_all(path.join("in the way")).unwrap();
        let error = output.commit().unwrap_err().to_string();
        assert!(error.starts_with("cannot rename the temporary file to it: "), "{error}");
        assert_eq!(entries(&folder), ["rho.npy"]);
    }
}

#[test]
fn places_where_no_file_can_be() {
    let (folder, path) = place();
    let header = Header::new(&[2], Dtype::F64, false);
    let create = |path: &Path| Output::create(path, &header, false).unwrap_err().to_string();

    let found = create(&folder.path().join("missing/rho.npy"));
    assert!(found.starts_with("cannot create a temporary file beside it: No such file"), "{found}");
    fs::write(&path, "a file").unwrap();
    let found = create(&path.join("rho.npy"));
    assert!(found.contains("Not a directory"), "{found}");
    for path in [folder.path(), Path::new("/"), Path::new(""), Path::new("/dev/full")] {
        assert_eq!(create(path), "found a directory or a device, expected a regular file");
    }
    assert_eq!(entries(&folder), ["rho.npy"]);
}

#[test]
fn headers_of_no_file() {
    let (folder, path) = place();
    let create = |header: &Header| Output::create(&path, header, true).unwrap_err().to_string();
    assert!(create(&Header::new(&[], Dtype::F64, false)).contains("0 axes, expected 1 to 4"));
    assert!(
        create(&Header::new(&[1 << 32, 1 << 32], Dtype::F64, false)).contains("needs more than")
    );
    assert!(entries(&folder).is_empty());
}

#[test]
fn the_first_bytes_are_those_that_numpy_writes() {
    let (_folder, path) = place();
    write_numbered::<f32>(&path, &[2], false);
    let bytes = fs::read(&path).unwrap();
    let text =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    assert_eq!(bytes[..text.len()], text[..]);
    assert!(bytes[text.len()..127].iter().all(|&byte| byte == b' '));
    assert_eq!(bytes[127..], *b"\n\0\0\0\0\0\0\x80\x3f");
}

/// The mode, the user and the group of a file.
fn rights(path: &Path) -> [u32; 3] {
    let found = fs::metadata(path).unwrap();
    [found.mode(), found.uid(), found.gid()]
}

#[test]
fn a_new_file_has_the_mode_of_any_file() {
    let (folder, path) = place();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    write_numbered::<f64>(&path, &[2], false);
    assert_eq!(rights(&path), rights(&plain));
}

#[test]
fn a_file_that_is_replaced_keeps_mode_and_owner() {
    for (has_name, mode) in [true, false]
        .into_iter()
        .flat_map(|it| [0o600, 0o640, 0o666, 0o777, 0o200].map(|m| (it, m)))
    {
        let (folder, path) = place();
        fs::write(&path, "").unwrap();
        // Only root may give files away.
        let given = std::os::unix::fs::chown(&path, Some(65534), Some(65534));
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = rights(&path);
        assert!(given.is_err() || before[1..] == [65534; 2]);
        let header = Header::new(&[2], Dtype::F64, false);
        let output = Output::create(&path, &header, has_name).unwrap();
        let private = fs::metadata(output.open_by()).unwrap().mode();
        assert_eq!(private & 0o777, 0o600, "nobody else reads it before");
        write_brick(&output.open_by(), &header, &[0], &[2], &[1.0; 2]).unwrap();
        output.commit().unwrap();
        assert_eq!((rights(&path), entries(&folder).len()), (before, 1));
    }
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let (_folder, path) = place();
    fs::write(&path, "protected").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::File::options().write(true).open(&path).is_ok() {
        eprintln!("skipped: root may write any file");
        return;
    }
    let error = Output::create(&path, &Header::new(&[2], Dtype::F64, false), false).unwrap_err();
    assert!(error.starts_with("cannot write: Permission denied"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "protected");
}

#[test]
fn symbolic_links_are_followed() {
    let (folder, path) = place();
    fs::create_dir(folder.path().join("deep")).unwrap();
    let [link, deep] = ["link.npy", "deep/link.npy"].map(|name| folder.path().join(name));
    symlink("deep/link.npy", &link).unwrap();
    symlink("../rho.npy", &deep).unwrap();
    // At first they lead to no file.
    for length in [3, 4] {
        write_numbered::<f64>(&link, &[length], false);
        assert!([&link, &deep].iter().all(|link| fs::symlink_metadata(link).unwrap().is_symlink()));
        assert_eq!(Header::open(&path).unwrap().shape, [length]);
    }
    let circle = folder.path().join("circle");
    symlink("circle", &circle).unwrap();
    let error = Output::create(&circle, &Header::new(&[2], Dtype::F64, false), false).unwrap_err();
    assert!(error.contains("Too many levels of symbolic links"), "{error}");
}
