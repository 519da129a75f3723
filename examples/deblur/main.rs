//! Blurs a picture, and restores it by Wiener's filter.
//!
//! ```text
//! cargo run --release --example deblur -- picture.png --motion 25,40 --noise 0.01
//! cargo build --release --example deblur --features mpi
//! mpirun -n 4 target/release/examples/deblur picture.png
//! ```
//!
//! Without a picture it makes one. It prints signal-to-noise ratios, and writes the pictures
//! `deblur-blurred.png` and `deblur-restored.png`, and the one it made as `deblur-sharp.png`.
//! Existing files of these names are replaced. Pictures are PNG files of any kind; 16 bits stay 16
//! bits, and transparency is left out. Options:
//!
//! - `--motion LENGTH,ANGLE`: blurs by a motion `LENGTH` pixels long, at an angle in degrees,
//!   counter-clockwise from the right; `15,30` by default;
//! - `--gaussian SIGMA`: blurs by a Gaussian of this standard deviation in pixels instead;
//! - `--noise LEVEL`: adds noise of this standard deviation, where white is 1; 0 by default;
//! - `--restore`: the picture is blurred already. The noise that is assumed is 0.01 by default;
//!   more gives smoother pictures;
//! - `--ranks N`: threads, 4 by default; an MPI job has its own ranks;
//! - `--device`: computes on CUDA devices, with the feature `cuda`;
//! - `--out NAME`: how names of files begin, instead of `deblur`.
//!
//! Rank 0 reads, holds and writes pictures, and other ranks hold no pixels. The plan spreads them
//! for its transforms. Colours are a batch, and one transform of the kernel serves all of them.

mod blur;
#[cfg(feature = "cuda")]
#[path = "../common/gpu.rs"]
mod gpu;
mod kernel;
mod picture;
#[path = "../common/replace.rs"]
mod replace;
#[path = "../common/target.rs"]
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use thriffty::planning::{Reduce, agree};
use thriffty::{Comm, Error};

use blur::Blur;
use kernel::Kernel;
use picture::Picture;
use target::{OnHost, Target, on_device};

/// Rows and columns of the picture that is made.
const MADE: [usize; 2] = [384, 512];
/// The longest blur, in pixels.
const LONGEST: f64 = 2000.0;

#[derive(Clone, Debug)]
struct Options {
    picture: Option<PathBuf>,
    kernel: Kernel,
    noise: Option<f64>,
    is_blurred: bool,
    ranks: usize,
    is_on_device: bool,
    out: String,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            picture: None,
            kernel: Kernel::Motion { length: 15.0, angle: 30.0 },
            noise: None,
            is_blurred: false,
            ranks: 4,
            is_on_device: false,
            out: "deblur".into(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--motion" => options.kernel = motion(&value()?)?,
                "--gaussian" => {
                    options.kernel = Kernel::Gaussian(number(&word, &value()?, 0.1, LONGEST)?);
                }
                "--noise" => options.noise = Some(number(&word, &value()?, 0.0, 1.0)?),
                "--restore" => options.is_blurred = true,
                "--ranks" => {
                    let text = value()?;
                    let ranks = text.parse().ok().filter(|&ranks| ranks > 0);
                    options.ranks =
                        ranks.ok_or(format!("--ranks: found {text}, expected 1 or more"))?;
                }
                "--device" => options.is_on_device = true,
                "--out" => options.out = value()?,
                _ if !word.starts_with('-') && options.picture.is_none() => {
                    options.picture = Some(word.into());
                }
                _ => {
                    return Err(format!(
                        "unexpected argument {word}: expected one picture, --motion LENGTH,ANGLE, \
                         --gaussian SIGMA, --noise LEVEL, --restore, --ranks N, --device, \
                         --out NAME"
                    ));
                }
            }
        }
        let taken = |kind: &str| options.picture.as_deref() == Some(&options.file(kind));
        match ["blurred", "restored"].into_iter().find(|kind| taken(kind)) {
            Some(kind) => {
                let name = options.file(kind);
                Err(format!("{} would be replaced: choose another --out", name.display()))
            }
            None if options.is_blurred && options.picture.is_none() => {
                Err("--restore needs a picture".into())
            }
            None => Ok(options),
        }
    }

    /// The name of a file that is written.
    fn file(&self, kind: &str) -> PathBuf {
        format!("{}-{kind}.png", self.out).into()
    }
}

fn motion(text: &str) -> Result<Kernel, String> {
    let Some((length, angle)) = text.split_once(',') else {
        return Err(format!("--motion: found {text}, expected LENGTH,ANGLE"));
    };
    Ok(Kernel::Motion {
        length: number("length of --motion", length, 1.0, LONGEST)?,
        angle: number("angle of --motion", angle, -360.0, 360.0)?,
    })
}

/// A number of an option, within a range.
fn number(option: &str, text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option}: found {text}, expected a number from {least} to {most}")),
    }
}

/// Does the whole task. Collective.
fn work<T: Target>(world: &dyn Comm, target: &T, options: &Options) -> Result<(), Error> {
    let read = match (&options.picture, world.rank()) {
        (Some(path), 0) => Picture::read(path).map(Some).map_err(|why| {
            Error::argument(path.display().to_string(), why, "a PNG file that can be read")
        }),
        (None, 0) => Ok(Some(Picture::made(MADE))),
        _ => Ok(None),
    };
    let picture = agree(world, read)?;
    let (shape, channels) = sizes(world, picture.as_ref())?;
    let mut blur = Blur::new((world, target), (shape, channels), options.kernel)?;
    if world.rank() == 0 {
        let ([height, width], [rows, columns]) = (shape, blur.continued());
        println!("{} ranks ({}), kernel: {}", world.size(), world.name(), options.kernel);
        let kind = if channels == 1 { "grey" } else { "colour" };
        println!("{width} x {height} pixels, {kind}, continued to {columns} x {rows}");
    }

    let noise = options.noise.unwrap_or(if options.is_blurred { 0.01 } else { 0.0 });
    let mut blurred =
        if options.is_blurred { picture.clone() } else { blur.blur(picture.as_ref())? };
    if let Some(blurred) = blurred.as_mut().filter(|_| !options.is_blurred) {
        add_noise(blurred, noise);
        blurred.round();
    }
    // Files have rounded numbers.
    let levels = blurred.as_ref().map_or(255.0, |blurred| f64::from(blurred.levels));
    let noise = (noise * noise + 1.0 / (12.0 * levels * levels)).sqrt();
    let start = Instant::now();
    let mut restored = blur.restore(blurred.as_ref(), noise)?;
    let seconds = start.elapsed().as_secs_f64();
    restored.iter_mut().for_each(Picture::round);

    let made = picture.as_ref().filter(|_| options.picture.is_none());
    let seen = blurred.as_ref().filter(|_| !options.is_blurred);
    let files = [("sharp", made), ("blurred", seen), ("restored", restored.as_ref())];
    let written = files.iter().try_for_each(|(kind, picture)| match picture {
        Some(picture) => write(picture, &options.file(kind)),
        None => Ok(()),
    });
    agree(world, written)?;
    if let (Some(sharp), Some(seen), Some(restored)) = (&picture, seen, &restored) {
        let [before, after] = [seen, restored].map(|found| sharp.signal_to_noise(found));
        println!("signal to noise: {before:.1} dB blurred, {after:.1} dB restored");
    }
    if world.rank() == 0 {
        println!("restored in {seconds:.3} s");
    }
    Ok(())
}

/// The sizes and the number of colours of rank 0's picture, on all ranks. Collective.
fn sizes(world: &dyn Comm, picture: Option<&Picture>) -> Result<([usize; 2], usize), Error> {
    let mut sizes = picture.map_or([0.0; 3], |picture| {
        [picture.shape[0] as f64, picture.shape[1] as f64, picture.channels() as f64]
    });
    world.allreduce(Reduce::Max, &mut sizes)?;
    let [height, width, channels] = sizes.map(|size| size as usize);
    Ok(([height, width], channels))
}

/// Adds normal random numbers of this standard deviation, the same in every run.
fn add_noise(picture: &mut Picture, deviation: f64) {
    let mut state = 0u64;
    // Pseudorandom numbers between 0 and 1, by the generator SplitMix64.
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) as f64 + 0.5) / (u64::MAX as f64 + 1.0)
    };
    for value in &mut picture.values {
        let radius = (-2.0 * uniform().ln()).sqrt();
        *value += deviation * radius * (std::f64::consts::TAU * uniform()).cos();
    }
}

/// Writes a picture, and says so.
fn write(picture: &Picture, path: &Path) -> Result<(), Error> {
    let name = path.display();
    let failed = |why| Error::argument(name.to_string(), why, "a file that can be written");
    picture.write(path).map_err(failed)?;
    println!("wrote {name}");
    Ok(())
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("deblur: {text}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.iter().for_each(|error| eprintln!("deblur: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs on the processes of an MPI job, or on threads. Only one rank has the text of an error.
fn run(options: &Options) -> Result<(), Option<Error>> {
    thriffty::run(options.ranks, |world| {
        let done = if options.is_on_device {
            on_device(world).and_then(|target| work(world, &target, options))
        } else {
            work(world, &OnHost, options)
        };
        done.map_err(|error| (world.rank() == 0).then_some(error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The made picture, blurred and restored by `ranks` ranks.
    fn restored(ranks: usize, kernel: Kernel, noise: f64) -> [Picture; 3] {
        let pictures = thriffty::threads(ranks, |world| {
            let sharp = (world.rank() == 0).then(|| Picture::made([90, 120]));
            let (shape, channels) = sizes(&world, sharp.as_ref())?;
            let mut blur = Blur::new((&world, &OnHost), (shape, channels), kernel)?;
            let mut blurred = blur.blur(sharp.as_ref())?;
            blurred.iter_mut().for_each(|blurred| add_noise(blurred, noise));
            let restored = blur.restore(blurred.as_ref(), noise)?;
            let Some(((sharp, blurred), restored)) = sharp.zip(blurred).zip(restored) else {
                return Ok(None);
            };
            Ok::<_, Error>(Some([sharp, blurred, restored]))
        });
        pictures.unwrap().swap_remove(0).unwrap()
    }

    #[test]
    fn restored_pictures_are_nearer_to_sharp_ones() {
        let motion = Kernel::Motion { length: 7.0, angle: 30.0 };
        for (kernel, noise, gain) in
            [(motion, 0.002, 8.0), (motion, 0.02, 2.0), (Kernel::Gaussian(1.5), 0.002, 3.0)]
        {
            let [sharp, blurred, restored] = restored(2, kernel, noise);
            let [before, after] = [&blurred, &restored].map(|found| sharp.signal_to_noise(found));
            assert!(after > before + gain, "{kernel}, noise {noise}: {before} dB, {after} dB");
        }
    }

    #[test]
    fn ranks_restore_the_same_picture() {
        let kernel = Kernel::Gaussian(1.5);
        let [one, three] = [1, 3].map(|ranks| restored(ranks, kernel, 0.01));
        for (one, three) in one.iter().zip(&three) {
            let pairs = one.values.iter().zip(&three.values);
            let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(largest < 1e-12, "{largest}");
        }
    }

    #[test]
    fn wrong_options_are_told() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(String::from));
        assert_eq!(
            parse("a.png --motion 9,-45").unwrap().kernel,
            Kernel::Motion { length: 9.0, angle: -45.0 }
        );
        for (text, told) in [
            ("--motion 9", "--motion: found 9, expected LENGTH,ANGLE"),
            ("--gaussian inf", "--gaussian: found inf, expected a number from 0.1 to 2000"),
            ("--noise", "--noise needs a value"),
            ("--restore", "--restore needs a picture"),
            ("--ranks 0", "--ranks: found 0"),
            ("a.png b.png", "unexpected argument b.png"),
            ("deblur-blurred.png", "deblur-blurred.png would be replaced"),
        ] {
            assert!(parse(text).unwrap_err().starts_with(told), "{text}");
        }
    }

    #[test]
    fn missing_pictures_are_told_on_all_ranks() {
        let options = Options::parse(["/nowhere/a.png".into()].into_iter()).unwrap();
        let error = thriffty::threads(2, |world| work(&world, &OnHost, &options)).unwrap_err();
        assert!(error.to_string().contains("/nowhere/a.png: found"), "{error}");
    }
}
