//! A planner: which transforms a line needs, and where their tables are.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rustdct::algorithm::{
    Dct1ConvertToFft, Dct1Naive, Dst1ConvertToFft, Dst1Naive, Type2And3ConvertToFft,
    Type4ConvertToFftOdd, Type4ConvertToType3Even, Type4Naive,
};
use rustdct::{Dct1, DctNum, DctPlanner, Dst1, TransformType2And3, TransformType4};
use rustfft::Fft;
use rustfft::num_complex::Complex;

use crate::bluestein::{Bluestein, convolution_len};
use crate::complex_fft::ComplexFft;
use crate::costs::{Costs, Layout};
use crate::lanes::TrigonometricType::{I, II, III, IV};
use crate::lanes::{self, Batch, BatchFft, LaneLayout, Real, Trigonometric};
use crate::one_by_one::{self, LONG};
use crate::planner::{Planner, RealTransform};
use crate::real_fft::{RealFft, inner_len, real_fft};
use crate::shared::{Held, Made, Transform};

pub(crate) struct Planners {
    held: Held,
    costs: Costs,
    /// Of the costs of radices.
    hash: u64,
}

impl Planners {
    pub(crate) fn new(costs: Costs) -> Self {
        let mut hasher = DefaultHasher::new();
        for (radix, cost) in &costs.radices {
            (radix, cost.to_bits()).hash(&mut hasher);
        }
        Self { held: Held::default(), costs, hash: hasher.finish() }
    }

    fn batch<T: DctNum + Real>(&mut self, batch: Batch, n: usize) -> Option<Arc<dyn BatchFft<T>>> {
        let Self { held, costs, hash } = self;
        if n > costs.longest {
            return None;
        }
        held.get::<T, _>(Transform::Batch(batch, *hash), n, || {
            let transform = lanes::plan(batch, n, &costs.radices);
            let bytes = transform.as_ref().map_or(0, |fft| fft.table_bytes());
            Made { transform, bytes }
        })
    }

    fn forward<T: DctNum + Real>(&mut self, n: usize) -> Arc<dyn Fft<T>> {
        let transform = Transform::Complex { forward: true };
        if !one_by_one::needs_convolution(n) {
            return self.held.get::<T, _>(transform, n, || one_by_one::complex(n, true));
        }
        let convolution = self.forward(convolution_len(n));
        self.held.get::<T, Arc<dyn Fft<T>>>(transform, n, || {
            let fft = Bluestein::new(n, convolution);
            let bytes = fft.table_bytes();
            Made { transform: Arc::new(fft), bytes }
        })
    }

    fn dct1<T: DctNum + Real>(&mut self, n: usize) -> Arc<dyn Dct1<T>> {
        let fft = (n >= 10).then(|| self.forward(2 * (n - 1)));
        self.held.get::<T, Arc<dyn Dct1<T>>>(Transform::Dct1, n, || match fft {
            Some(fft) => Made { transform: Arc::new(Dct1ConvertToFft::new(fft)), bytes: 0 },
            None => Made { transform: Arc::new(Dct1Naive::new(n)), bytes: 0 },
        })
    }

    fn type2_and_3<T: DctNum + Real>(&mut self, n: usize) -> Arc<dyn TransformType2And3<T>> {
        let by_halves = n == 3 || n > 1 && n.is_power_of_two();
        let fft = (!by_halves).then(|| self.forward(n));
        let bytes = complex_bytes::<T>(if by_halves { n / 2 } else { n });
        self.held.get::<T, Arc<dyn TransformType2And3<T>>>(Transform::Type2And3, n, || match fft {
            Some(fft) => Made { transform: Arc::new(Type2And3ConvertToFft::new(fft)), bytes },
            None => Made { transform: DctPlanner::new().plan_dct2(n), bytes },
        })
    }

    fn type4<T: DctNum + Real>(&mut self, n: usize) -> Arc<dyn TransformType4<T>> {
        let (is_even, by_fft) = (n.is_multiple_of(2), n >= 6);
        let half = (by_fft && is_even).then(|| self.type2_and_3(n / 2));
        let fft = (by_fft && !is_even).then(|| self.forward(n));
        self.held.get::<T, Arc<dyn TransformType4<T>>>(Transform::Type4, n, || match (half, fft) {
            (Some(half), _) => {
                let bytes = complex_bytes::<T>(n / 2);
                Made { transform: Arc::new(Type4ConvertToType3Even::new(half)), bytes }
            }
            (_, Some(fft)) => {
                Made { transform: Arc::new(Type4ConvertToFftOdd::new(fft)), bytes: 0 }
            }
            (None, None) => Made { transform: Arc::new(Type4Naive::new(n)), bytes: 0 },
        })
    }

    fn dst1<T: DctNum + Real>(&mut self, n: usize) -> Arc<dyn Dst1<T>> {
        let fft = (n >= 25).then(|| self.forward(2 * (n + 1)));
        self.held.get::<T, Arc<dyn Dst1<T>>>(Transform::Dst1, n, || match fft {
            Some(fft) => Made { transform: Arc::new(Dst1ConvertToFft::new(fft)), bytes: 0 },
            None => Made { transform: Arc::new(Dst1Naive::new(n)), bytes: 0 },
        })
    }
}

/// A transform, each of which has its own trait in rustdct.
macro_rules! real_transform {
    ($plan:expr, $run:ident) => {{
        let plan = $plan;
        RealTransform {
            scratch_len: plan.get_scratch_len(),
            run: Box::new(move |line: &mut [T], scratch: &mut [T]| plan.$run(line, scratch)),
        }
    }};
}

impl<T: DctNum + Real> Planner<T> for Planners {
    fn table_bytes(&self) -> usize {
        self.held.bytes()
    }

    fn complex(&mut self, n: usize, forward: bool) -> ComplexFft<T> {
        if forward || n >= LONG {
            return ComplexFft::new(self.forward(n), !forward);
        }
        let transform = Transform::Complex { forward };
        ComplexFft::new(
            self.held.get::<T, _>(transform, n, || one_by_one::complex(n, false)),
            false,
        )
    }

    fn real(&mut self, n: usize) -> Arc<RealFft<T>> {
        let fft = self.forward(inner_len(n));
        self.held.get::<T, _>(Transform::Real, n, || {
            let fft = real_fft(n, fft);
            let bytes = fft.table_bytes();
            Made { transform: Arc::new(fft), bytes }
        })
    }

    fn complex_batch(
        &mut self,
        n: usize,
        forward: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>> {
        let lanes = if layout == Layout::Rows { LaneLayout::Pairs } else { LaneLayout::Columns };
        self.batch(if forward { Batch::Forward(lanes) } else { Batch::Inverse(lanes) }, n)
    }

    fn real_to_complex_batch(&mut self, n: usize) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(Batch::RealToComplex, n)
    }

    fn complex_to_real_batch(&mut self, n: usize) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(Batch::ComplexToReal, n)
    }

    fn trigonometric_batch(
        &mut self,
        transform: Trigonometric,
        n: usize,
        complex: bool,
    ) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(Batch::Trigonometric(transform, complex), n)
    }

    fn trigonometric(&mut self, transform: Trigonometric, n: usize) -> RealTransform<T> {
        let Trigonometric { kind, sine } = transform;
        match (kind, sine) {
            (I, false) => real_transform!(self.dct1(n), process_dct1_with_scratch),
            (II, false) => real_transform!(self.type2_and_3(n), process_dct2_with_scratch),
            (III, false) => real_transform!(self.type2_and_3(n), process_dct3_with_scratch),
            (IV, false) => real_transform!(self.type4(n), process_dct4_with_scratch),
            (I, true) => {
                let RealTransform { scratch_len, run } =
                    real_transform!(self.dst1(n), process_dst1_with_scratch);
                let run = move |line: &mut [T], scratch: &mut [T]| {
                    // rustdct assumes zeros where it does not write.
                    scratch.fill(T::zero());
                    run(line, scratch);
                };
                RealTransform { scratch_len, run: Box::new(run) }
            }
            (II, true) => real_transform!(self.type2_and_3(n), process_dst2_with_scratch),
            (III, true) => real_transform!(self.type2_and_3(n), process_dst3_with_scratch),
            (IV, true) => real_transform!(self.type4(n), process_dst4_with_scratch),
        }
    }
}

fn complex_bytes<T>(numbers: usize) -> usize {
    numbers * size_of::<Complex<T>>()
}
