use super::*;

/// A file of one axis with these bytes, read as numbers of double precision.
fn read(descr: &str, bytes: &[u8]) -> Vec<f64> {
    let (_folder, path) = place();
    let size = descr[2..].parse::<usize>().unwrap();
    let n = bytes.len() / size;
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({n},), }}");
    let length = (text.len() as u16).to_le_bytes();
    fs::write(&path, [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), bytes].concat()).unwrap();
    let header = Header::open(&path).unwrap();
    assert_eq!(header.item.to_string(), descr);
    match header.dtype {
        Dtype::F32 => whole::<f32>(&path, &header).into_iter().map(f64::from).collect(),
        Dtype::F64 => whole::<f64>(&path, &header),
        Dtype::C64 => {
            let all = whole::<Complex<f32>>(&path, &header);
            all.into_iter().flat_map(|z| [z.re, z.im]).map(f64::from).collect()
        }
        Dtype::C128 => {
            whole::<Complex<f64>>(&path, &header).into_iter().flat_map(|z| [z.re, z.im]).collect()
        }
    }
}

fn whole<E: Element>(path: &Path, header: &Header) -> Vec<E> {
    let mut out = vec![E::numbered(0); header.shape[0]];
    read_brick(path, header, &[0], &header.shape, &mut out).unwrap();
    out
}

/// The bytes of numbers in both byte orders, and the numbers.
macro_rules! both {
    ($name:literal, $type:ty, $numbers:expr) => {{
        let numbers: Vec<$type> = $numbers.into();
        let expected: Vec<f64> = numbers.iter().map(|x| *x as f64).collect();
        let little: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let big: Vec<u8> = numbers.iter().flat_map(|x| x.to_be_bytes()).collect();
        assert_eq!(read(concat!("<", $name), &little), expected);
        assert_eq!(read(concat!(">", $name), &big), expected);
    }};
}

#[test]
fn numbers_of_every_sort_are_converted() {
    both!("i2", i16, [0, -1, i16::MIN, i16::MAX, 258]);
    both!("i4", i32, [0, -1, i32::MIN, i32::MAX, 1 << 24]);
    both!("i8", i64, [0, -1, i64::MIN, i64::MAX, (1 << 53) + 1]);
    both!("u2", u16, [0, 1, u16::MAX]);
    both!("u4", u32, [0, 1, u32::MAX]);
    both!("u8", u64, [0, 1, u64::MAX]);
    both!("f4", f32, [0.0, -1.5, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY]);
    both!("f8", f64, [0.0, -1.5, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY]);
    both!("c8", f32, [0.5, -1.5, 3.0, 4.0]);
    both!("c16", f64, [0.5, -1.5, 3.0, 4.0]);
    assert_eq!(read("|i1", &[0, 127, 128, 255]), [0.0, 127.0, -128.0, -1.0]);
    assert_eq!(read("|u1", &[0, 127, 128, 255]), [0.0, 127.0, 128.0, 255.0]);
    assert_eq!(read("|b1", &[0, 1, 2]), [0.0, 1.0, 1.0]);
    // 1, -2, 65504, 2^-24 and infinity.
    let halves = [0x3c00u16, 0xc000, 0x7bff, 1, 0x7c00];
    let expected = [1.0, -2.0, 65504.0, 2f64.powi(-24), f64::INFINITY];
    assert_eq!(read("<f2", &halves.map(u16::to_le_bytes).concat()), expected);
    assert_eq!(read(">f2", &halves.map(u16::to_be_bytes).concat()), expected);
}

#[test]
fn long_runs_are_converted_in_pieces() {
    let numbers: Vec<i32> = (0..100_003).map(|i| i * 7 - 5).collect();
    both!("i4", i32, numbers);
}

#[test]
fn bricks_of_other_numbers_are_those_of_the_file() {
    let (_folder, path) = place();
    for fortran in [false, true] {
        let plain = write_numbered::<f64>(&path, &[5, 4, 3], fortran);
        let bytes = fs::read(&path).unwrap();
        let (text, data) = bytes.split_at(plain.data_offset as usize);
        let text = String::from_utf8_lossy(&text[10..]).replace("<f8", ">u2");
        let value = |x: &[u8]| f64::from_le_bytes(x.try_into().unwrap()) as u16;
        let data: Vec<u8> = data.chunks_exact(8).flat_map(|x| value(x).to_be_bytes()).collect();
        fs::write(&path, [&bytes[..10], text.as_bytes(), &data].concat()).unwrap();
        let header = Header::open(&path).unwrap();
        for (lo, hi) in [([0, 0, 0], [5, 4, 3]), ([1, 0, 0], [3, 4, 3]), ([1, 1, 1], [4, 3, 2])] {
            let expected = numbered::<f64>(&header, &lo, &hi);
            let mut found = vec![0.0; expected.len()];
            read_brick(&path, &header, &lo, &hi, &mut found).unwrap();
            assert_eq!(found, expected);
        }
    }
}
