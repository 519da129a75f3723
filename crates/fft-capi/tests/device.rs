//! Plans on a device as C programs call them. If there is no GPU, it prints why and passes.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};
use std::sync::Arc;

use fft_capi::ffi::options::thriffty_options_set_stream;
use fft_capi::ffi::{
    Plan, thriffty_allocate, thriffty_forward, thriffty_forward_in_place, thriffty_inverse,
    thriffty_last_error, thriffty_plan_create_serial, thriffty_plan_destroy, thriffty_plan_recipe,
    thriffty_plan_sizes,
};
use fft_capi::status::Status;
use fft_capi::values::{Sizes, Transform};
use thriffty::gpu::Gpu;
use thriffty::gpu::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};

mod common;
use common::options;

const SHAPE: [i64; 3] = [6, 5, 8];

fn said() -> String {
    // SAFETY: the text is valid until the next call of this thread that fails.
    unsafe { CStr::from_ptr(thriffty_last_error()) }.to_string_lossy().into_owned()
}

fn create(stream: *mut c_void, settings: &[(&str, &str)]) -> (Status, *mut Plan) {
    let mut options = options(settings);
    let mut plan = null_mut();
    let r2c = Transform::R2c as i32;
    // SAFETY: the pointers are to what the header says; a stream is NULL or lives as long as plans.
    let made = unsafe {
        assert_eq!(thriffty_options_set_stream(&raw mut options, stream), Status::Ok);
        thriffty_plan_create_serial(&raw mut plan, r2c, 3, SHAPE.as_ptr(), &raw const options)
    };
    (made, plan)
}

#[test]
fn a_device_that_is_not_there_is_a_status_with_its_reason() {
    let (status, plan) = create(null_mut(), &[("device", "4096")]);
    assert_eq!(status, Status::Device, "{}", said());
    assert!(plan.is_null());
    assert!(said().contains("CUDA"), "{}", said());
    let (status, _) = create(null_mut(), &[("device", "0"), ("transport", "horse")]);
    assert_eq!(status, Status::Argument, "{}", said());
    assert!(said().contains("peer_to_peer, gpu_direct, host_staged"), "{}", said());
}

/// An array on the device as C programs have it.
fn address(array: &CudaSlice<f64>, stream: &Arc<CudaStream>) -> usize {
    array.device_ptr(stream).0 as usize
}

#[test]
fn arrays_and_streams_of_the_program() {
    let gpu = match Gpu::probe(0) {
        Ok(gpu) => gpu,
        Err(why) => return println!("not run: {why}"),
    };
    let own = gpu.new_stream().unwrap();
    // A program's own context, which calls leave as it is.
    let other = CudaContext::new_non_primary(0, 0).unwrap();
    let strange = other.new_stream().unwrap();
    let (status, _) = create(strange.cu_stream().cast(), &[("device", "0")]);
    assert_eq!(status, Status::Argument, "{}", said());
    assert!(said().contains("stream"), "{}", said());

    // CUDA's default stream, and one of the program's.
    for stream in [gpu.stream(), own.clone()] {
        let (status, plan) = create(stream.cu_stream().cast(), &[("device", "0")]);
        assert_eq!(status, Status::Ok, "{}", said());
        let mut sizes = Sizes::default();
        // SAFETY: the pointers are to what the header says.
        unsafe {
            let told = thriffty_plan_sizes(plan, &raw mut sizes, size_of::<Sizes>());
            assert_eq!(told, Status::Ok);
            assert!(thriffty_plan_recipe(plan, null_mut(), 0) > 20);
        }
        let (reads, writes) = (sizes.input_bytes, sizes.output_bytes);
        assert_eq!((reads, writes), (8 * 240, 16 * 150));
        let x = stream.clone_htod(&vec![1.0; reads / 8]).unwrap();
        let y = stream.alloc_zeros::<f64>(writes / 8).unwrap();
        let mut z = stream.alloc_zeros::<f64>(sizes.in_place_bytes / 8).unwrap();
        let host = [0u128; 200];
        let [at, to, place] = [&x, &y, &z].map(|array| address(array, &stream));
        let forward = |from: usize, bytes, to: usize, room| {
            let (from, to) = (without_provenance(from), without_provenance_mut(to));
            // SAFETY: the addresses and sizes are valid, or the call refuses them, as is checked
            // here.
            unsafe { thriffty_forward(plan, from, bytes, to, room) }
        };
        let refused = |status: Status, word: &str| {
            assert_eq!(status, Status::Argument, "{}", said());
            assert!(said().contains(word), "{word}: {}", said());
        };
        refused(forward(0, reads, to, writes), "NULL");
        refused(forward(host.as_ptr().addr(), reads, to, writes), "host");
        refused(forward(at, reads, host.as_ptr().addr(), writes), "host");
        refused(forward(at + 8, reads - 8, to, writes), "multiple of 16");
        refused(forward(at, reads - 16, to, writes), "input");
        refused(forward(at, reads, to, writes - 16), "output");
        refused(forward(at, reads, at, writes), "overlap");
        // SAFETY: as above; the last one is more than there is.
        unsafe {
            refused(thriffty_forward_in_place(plan, null_mut(), 4000), "NULL");
            let place = without_provenance_mut(place);
            refused(thriffty_forward_in_place(plan, place, 16), "array in place");
            refused(thriffty_forward_in_place(plan, place, 1 << 40), "allocated");
            refused(thriffty_inverse(plan, null(), 0, place, reads), "input");
        }
        assert_eq!(forward(at, reads, to, writes), Status::Ok, "{}", said());
        // SAFETY: as above.
        unsafe {
            let (to, place) = (without_provenance(to), without_provenance_mut(place));
            assert_eq!(thriffty_inverse(plan, to, writes, place, reads), Status::Ok, "{}", said());
        }
        let (sums, back) = (stream.clone_dtoh(&y).unwrap(), stream.clone_dtoh(&z).unwrap());
        stream.synchronize().unwrap();
        assert!((sums[0] - 240.0).abs() < 1e-12 && sums[1..].iter().all(|v| v.abs() < 1e-12));
        assert!(back[..240].iter().all(|v| (v - 1.0).abs() < 1e-14));

        // An array of the plan's, which ranks of a host would see.
        let mut made = null_mut();
        // SAFETY: there is room for a pointer; the array is as long as the longer side.
        unsafe {
            assert_eq!(thriffty_allocate(plan, &raw mut made), Status::Ok, "{}", said());
            let there =
                stream.upgrade_device_ptr::<f64>(made.expose_provenance() as u64, writes / 8);
            let zeros = stream.clone_dtoh(&there).unwrap();
            there.leak();
            assert!(zeros.iter().all(|v| *v == 0.0));
            stream.memset_zeros(&mut z).unwrap();
            assert_eq!(
                forward(at, reads, made.expose_provenance(), writes),
                Status::Ok,
                "{}",
                said()
            );
            let place = without_provenance_mut(place);
            let status = thriffty_inverse(plan, made, writes, place, reads);
            assert_eq!(status, Status::Ok, "{}", said());
        }
        let again = stream.clone_dtoh(&z).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(again[..240], back[..240]);

        other.bind_to_thread().unwrap();
        assert_eq!(forward(at, reads, to, writes), Status::Ok, "{}", said());
        assert_eq!(thriffty_plan_destroy(plan), Status::Ok);
        let current = thriffty::gpu::cudarc::driver::result::ctx::get_current().unwrap();
        assert_eq!(current, Some(other.cu_ctx()), "the program's context is current again");
    }
}
