//! ZFP at a fixed rate, one-dimensional, through its C interface.

use std::ffi::c_void;

use zfp_sys::{
    bitstream, stream_close, stream_open, zfp_compress, zfp_decompress, zfp_field, zfp_field_1d,
    zfp_field_free, zfp_stream, zfp_stream_close, zfp_stream_maximum_size, zfp_stream_open,
    zfp_stream_rewind, zfp_stream_set_bit_stream, zfp_stream_set_rate, zfp_type_zfp_type_double,
};

/// An array, and what it is compressed into.
pub(crate) struct Zfp {
    pub(crate) array: Vec<f64>,
    buffer: Vec<u8>,
    field: *mut zfp_field,
    stream: *mut zfp_stream,
    bits: *mut bitstream,
}

impl Zfp {
    pub(crate) fn new(data: &[f64], rate: f64) -> Self {
        let mut array = data.to_vec();
        let kind = zfp_type_zfp_type_double;
        // SAFETY: the field points to the array, whose memory lives and stays in place as long as `self`.
        let field = unsafe { zfp_field_1d(array.as_mut_ptr().cast::<c_void>(), kind, array.len()) };
        // SAFETY: a stream may be opened without bits; they are set before it is used.
        let stream = unsafe { zfp_stream_open(std::ptr::null_mut()) };
        // SAFETY: the stream and the field have just been made.
        let bytes = unsafe {
            zfp_stream_set_rate(stream, rate, kind, 1, 0);
            zfp_stream_maximum_size(stream, field)
        };
        let mut buffer = vec![0; bytes];
        // SAFETY: the buffer has so many bytes and lives as long as `self`.
        let bits = unsafe { stream_open(buffer.as_mut_ptr().cast::<c_void>(), bytes) };
        // SAFETY: both are open.
        unsafe { zfp_stream_set_bit_stream(stream, bits) };
        Self { array, buffer, field, stream, bits }
    }

    /// Bytes of the result.
    pub(crate) fn compress(&mut self) -> usize {
        // SAFETY: all three are open, and the buffer is as long as ZFP said that it must be.
        let bytes = unsafe {
            zfp_stream_rewind(self.stream);
            zfp_compress(self.stream, self.field)
        };
        assert!(0 < bytes && bytes <= self.buffer.len());
        bytes
    }

    pub(crate) fn decompress(&mut self) {
        // SAFETY: as in `compress`, which has filled the buffer.
        let bytes = unsafe {
            zfp_stream_rewind(self.stream);
            zfp_decompress(self.stream, self.field)
        };
        assert!(bytes > 0);
    }
}

impl Drop for Zfp {
    fn drop(&mut self) {
        // SAFETY: all three are open and not used again.
        unsafe {
            zfp_field_free(self.field);
            zfp_stream_close(self.stream);
            stream_close(self.bits);
        }
    }
}
