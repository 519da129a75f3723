use std::os::unix::fs::FileExt;

use super::*;

/// A file with these bytes, opened.
fn open(bytes: &[u8]) -> Result<Header, String> {
    let (_folder, path) = place();
    fs::write(&path, bytes).unwrap();
    Header::open(&path)
}

/// A file of version 1.0 with this text and this many bytes of data, opened.
fn open_text(text: &str, data: usize) -> Result<Header, String> {
    let length = (text.len() as u16).to_le_bytes();
    open(&[b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &vec![0; data]].concat())
}

fn message<T: std::fmt::Debug>(result: Result<T, String>) -> String {
    result.unwrap_err()
}

#[test]
fn a_file_cut_anywhere_or_too_long() {
    let (_folder, path) = place();
    for shape in [&[2, 3][..], &[0], &[1, 1, 1, 1]] {
        write_numbered::<f32>(&path, shape, false);
        let bytes = fs::read(&path).unwrap();
        assert!(open(&bytes).is_ok());
        for length in 0..bytes.len() {
            open(&bytes[..length]).unwrap_err();
        }
        assert_eq!(
            message(open(&[&bytes[..], b"\0"].concat())),
            format!(
                "the file is {} bytes long, expected {} from its header",
                bytes.len() + 1,
                bytes.len()
            )
        );
    }
}

#[test]
fn no_change_of_a_byte_panics() {
    let (_folder, path) = place();
    let header = write_numbered::<f32>(&path, &[2, 3], false);
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    for at in 0..header.data_offset {
        let mut was = [0];
        file.read_exact_at(&mut was, at).unwrap();
        for byte in 0..=255 {
            file.write_all_at(&[byte], at).unwrap();
            let _ = Header::open(&path);
        }
        file.write_all_at(&was, at).unwrap();
    }
    assert_eq!(Header::open(&path).unwrap(), header);
}

#[test]
fn what_is_no_numpy_file() {
    let magic = "expected \"\\x93NUMPY\"";
    assert_eq!(message(open(b"")), format!("not a NumPy file: it starts with \"\", {magic}"));
    assert_eq!(
        message(open(b"PK\x03\x04 an archive")),
        format!("not a NumPy file: it starts with \"PK\\x03\\x04 a\", {magic}")
    );
    assert_eq!(
        message(open(b"\x93NUMPY\x04\x00\x00\x00")),
        "found format version 4.0, expected 1.0, 2.0 or 3.0"
    );

    let (folder, path) = place();
    assert_eq!(message(Header::open(&path)), "cannot open: No such file or directory (os error 2)");
    fs::create_dir(&path).unwrap();
    assert_eq!(
        message(Header::open(&path)),
        "found a directory or a device, expected a regular file"
    );
    drop(folder);
}

#[test]
fn headers_that_promise_too_much_take_no_memory() {
    let long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}";
    assert_eq!(
        message(open(long)),
        "the file is 14 bytes long, expected 4294967307 from its header"
    );
    let padded = [&b"\x93NUMPY\x02\x00\x00\x00\x02\x00{}"[..], &[b' '; 1 << 17]].concat();
    assert_eq!(
        message(open(&padded)),
        "the header's text is 131072 bytes long, expected at most 65535"
    );

    let shape = |shape: &str| {
        open_text(&format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"), 0)
    };
    assert_eq!(
        message(shape("(4294967296, 4294967296)")),
        "shape [4294967296, 4294967296] of <f8 needs more than the 9223372036854775807 bytes that a file can have"
    );
    assert!(message(shape("(1152921504606846975,)")).starts_with("shape"), "the header counts too");
    assert!(message(shape("(1000000000000,)")).starts_with("the file is "));
    assert_eq!(shape("(4294967296, 4294967296, 0)").unwrap().shape, [1 << 32, 1 << 32, 0]);
    assert_eq!(message(shape("()")), "found an array of 0 axes, expected 1 to 4");
    assert_eq!(
        message(shape(&format!("({})", "1, ".repeat(5)))),
        "found an array of 5 axes, expected 1 to 4"
    );
}

#[test]
fn texts_of_every_sort() {
    let good = [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }    \n",
        "{\"shape\":(2L,003L),\"fortran_order\":False,\x0c\"descr\":\"<f8\"}",
        " { 'shape' : ( 2 , 3 , ) , 'descr' : '<f8' , 'fortran_order' : False , } \n",
    ];
    for text in good {
        let header = open_text(text, 48).unwrap();
        assert_eq!(
            header,
            Header {
                data_offset: 10 + text.len() as u64,
                ..Header::new(&[2, 3], Dtype::F64, false)
            }
        );
    }

    let bad = [
        ("", "EOF"),
        ("{}", "missing field `descr`"),
        ("{'size': 3}", "unknown field `size`"),
        ("{'shape': (), 'shape': ()}", "duplicate field `shape`"),
        ("{'shape': (-3, 2)}", "integer `-3`"),
        ("{'shape': (18446744073709551616,)}", "expected usize"),
        ("{'shape': (1 2)}", "expected `,` or `]`"),
        ("{'fortran_order': 0}", "expected a boolean"),
        ("{'descr': '<f8' 'shape'", "expected `,` or `}`"),
        ("{'descr': '<f8', 'fortran_order': True, 'shape': (1,)} x", "trailing characters"),
    ];
    for (text, expected) in bad {
        let found = message(open_text(text, 0));
        assert!(found.starts_with("the header's text: ") && found.contains(expected), "{found}");
    }
}

#[test]
fn dtypes_that_are_not_ours() {
    let others = ["'<f16'", "'|f2'", "'<U8'", "'|S1'", "'<M8'", "'float64'", "'<f8L'", "'=f8'"];
    for found in others.into_iter().chain(["'<c4'", "''", "'é'", "'<é8'", "[['re', '<f8']]"]) {
        let text = format!("{{'descr': {found}, 'fortran_order': False, 'shape': (1,), }}");
        let message = message(open_text(&text, 8));
        let found = found.replace(' ', "");
        assert!(message.starts_with(&format!("found dtype {found}, expected b1, ")), "{message}");
        assert!(message.ends_with("f8, c8 or c16, of either byte order"), "{message}");
    }
}

#[test]
fn bricks_and_buffers_that_do_not_fit() {
    let (_folder, path) = place();
    let header = write_numbered::<f64>(&path, &[2, 3], false);
    let read =
        |lo: &[usize], hi: &[usize], n| read_brick(&path, &header, lo, hi, &mut vec![0f64; n]);
    for (lo, hi) in
        [(&[0, 0][..], &[2, 4][..]), (&[1, 0], &[0, 3]), (&[0], &[2]), (&[0, 0], &[2, 3, 1])]
    {
        let expected =
            format!("found the brick {lo:?}..{hi:?}, expected a box inside the shape [2, 3]");
        assert_eq!(message(read(lo, hi, 6)), expected);
    }
    assert_eq!(
        message(read(&[0, 0], &[2, 3], 5)),
        "found a buffer of 5 elements, expected 6 for the brick"
    );
    assert_eq!(
        message(read(&[0, 3], &[2, 3], 1)),
        "found a buffer of 1 elements, expected 0 for the brick"
    );

    let mut same_size = [Complex::new(0f32, 0f32); 6];
    let found = message(read_brick(&path, &header, &[0, 0], &[2, 3], &mut same_size));
    assert_eq!(
        found,
        "found elements of 8 bytes aligned to 4, expected 8 aligned to 8 for dtype <f8"
    );
    assert!(
        message(read_brick(&path, &header, &[0, 0], &[2, 3], &mut [0f32; 6]))
            .contains("of 4 bytes")
    );
    assert!(
        message(read_brick(&path, &header, &[0, 0], &[2, 3], &mut [(); 6])).contains("of 0 bytes")
    );
}

#[test]
fn a_file_that_shrinks_after_it_was_opened() {
    let (_folder, path) = place();
    let header = write_numbered::<f64>(&path, &[2, 3], false);
    fs::File::options().write(true).open(&path).unwrap().set_len(140).unwrap();
    let found = message(read_brick(&path, &header, &[0, 0], &[2, 3], &mut [0f64; 6]));
    assert_eq!(found, "cannot read 48 bytes at byte 128: failed to fill whole buffer");
    let found = message(write_brick(&path, &header, &[0, 0], &[2, 3], &[0f64; 6]));
    assert_eq!(found, "the file is 140 bytes long, expected 176 from its header");
}
