//! Tests of plans of several threads.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::field::DynTransform;

/// A panic of a rank before it transforms, on a thread of its own that may wait for ever.
#[test]
fn a_panic_of_one_thread_is_an_error_of_all() {
    for ranks in [1, 2, 3] {
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let (comm, grid) = (fft_comm::alone(), DynGrid::new([6, 5, 4]).unwrap());
            let mut draft = DynDraft::new(&comm, grid, DynTransform::C2c, Precision::F64);
            draft.threads = Some(ranks);
            let (team, _, _, arrays) = plans(&draft, draft.settle().unwrap()).unwrap();
            assert_eq!(team.threads(), ranks);
            let gone = ranks / 2;
            let data: Vec<_> = (0..ranks)
                .map(|_| Mutex::new(team.zeros(arrays.in_place_bytes()).unwrap()))
                .collect();
            let panics = team.on_each(|rank, plan| {
                assert_ne!(rank, gone, "as it should");
                let mut data = locked(&data[rank]);
                let bytes = plan.in_place_bytes();
                plan.run_in_place(Direction::Forward, &mut data.bytes_mut()[..bytes])
            });
            assert_eq!(panics, Err(Error::Left { gone }));
            let (x, mut y) = (vec![0; arrays.input_bytes()], vec![0; arrays.output_bytes()]);
            let again = team.run_between(Direction::Forward, &x, &mut y);
            assert_eq!(again, Err(Error::Left { gone }));
            done.send(()).unwrap();
        });
        wait.recv_timeout(Duration::from_secs(60)).expect("an error in time");
    }
}
