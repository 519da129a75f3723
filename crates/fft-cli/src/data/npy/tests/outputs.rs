use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

#[test]
fn the_final_name_appears_with_the_commit() {
    let (folder, path) = place();
    let header = Header::new(&[2, 3], Dtype::F64, false);
    let output = Output::create(&path, &header).unwrap();
    let names = entries(&folder);
    assert_eq!(names.len(), 1);
    assert!(names[0].starts_with(".rho.npy.") && names[0].ends_with(".tmp"), "{names:?}");
    // The temporary file is whole from the start.
    assert_eq!(Header::open(output.temporary_path()).unwrap(), header);
    output.commit().unwrap();
    assert_eq!(entries(&folder), ["rho.npy"]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 128 + 48);
}

#[test]
fn without_a_commit_nothing_changes() {
    let (folder, path) = place();
    fs::write(&path, "what was here before").unwrap();
    let header = Header::new(&[2, 3], Dtype::F64, false);
    let output = Output::create(&path, &header).unwrap();
    write_brick(output.temporary_path(), &header, &[0, 0], &[2, 3], &[1.0; 6]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "what was here before");
    drop(output);
    assert_eq!(fs::read_to_string(&path).unwrap(), "what was here before");
    assert_eq!(entries(&folder), ["rho.npy"]);
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    let (folder, path) = place();
    let output = Output::create(&path, &Header::new(&[2], Dtype::F64, false)).unwrap();
    fs::create_dir_all(path.join("in the way")).unwrap();
    let error = output.commit().unwrap_err().to_string();
    assert!(error.starts_with("cannot rename the temporary file to it: "), "{error}");
    assert_eq!(entries(&folder), ["rho.npy"]);
}

#[test]
fn places_where_no_file_can_be() {
    let (folder, path) = place();
    let header = Header::new(&[2], Dtype::F64, false);
    let create = |path: &Path| Output::create(path, &header).unwrap_err().to_string();

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
    let create = |header: &Header| Output::create(&path, header).unwrap_err().to_string();
    assert!(create(&Header::new(&[], Dtype::F64, false)).contains("0 axes, expected 1 to 64"));
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

#[test]
fn permissions_and_links_are_those_of_any_file() {
    let (folder, path) = place();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    write_numbered::<f64>(&path, &[2], false);
    assert_eq!(mode(&path), mode(&plain));

    let link = folder.path().join("link.npy");
    symlink(&path, &link).unwrap();
    write_numbered::<f64>(&link, &[3], false);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Header::open(&path).unwrap().shape, [3]);
}
