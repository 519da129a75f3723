//! Pictures, their files, and one to begin with.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Transformations};

use crate::replace::replace;

/// A picture in grey or in red, green and blue; values go from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    /// Rows and columns.
    pub(super) shape: [usize; 2],
    /// One array after the other, row by row.
    pub(super) values: Vec<f64>,
    /// The largest number of a file, 255 or 65535.
    pub(super) levels: u16,
}

impl Picture {
    pub(super) fn points(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    pub(super) fn channels(&self) -> usize {
        self.values.len() / self.points()
    }

    /// Discs, bars and a star on a gradient.
    pub(super) fn made(shape: [usize; 2]) -> Self {
        let points = shape[0] * shape[1];
        let mut picture = Self { shape, values: vec![0.0; 3 * points], levels: 255 };
        for at in 0..points {
            let [row, column] = [at / shape[1], at % shape[1]];
            for (down, right) in [(0.25, 0.25), (0.25, 0.75), (0.75, 0.25), (0.75, 0.75)] {
                let height = shape[0] as f64;
                let colour = scene((row as f64 + down) / height, (column as f64 + right) / height);
                for channel in 0..3 {
                    picture.values[channel * points + at] += 0.25 * colour[channel];
                }
            }
        }
        picture.round();
        picture
    }

    /// Rounds values to the ones that a file can hold.
    pub(super) fn round(&mut self) {
        let levels = f64::from(self.levels);
        for value in &mut self.values {
            *value = (value.clamp(0.0, 1.0) * levels).round() / levels;
        }
    }

    /// The mean square of values about the mean of each array.
    pub(super) fn variance(&self) -> f64 {
        let mut sum = 0.0;
        for channel in self.values.chunks_exact(self.points()) {
            let mean = channel.iter().sum::<f64>() / channel.len() as f64;
            sum += channel.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        }
        sum / self.values.len() as f64
    }

    /// The variance over the mean square of the difference, in decibels.
    pub(super) fn signal_to_noise(&self, other: &Self) -> f64 {
        let pairs = self.values.iter().zip(&other.values);
        let sum: f64 = pairs.map(|(a, b)| (a - b).powi(2)).sum();
        10.0 * (self.variance() * self.values.len() as f64 / sum).log10()
    }

    /// Reads a PNG file of any kind of colour. Transparency is left out.
    pub(super) fn read(path: &Path) -> Result<Self, DecodingError> {
        Self::decode(BufReader::new(File::open(path)?))
    }

    fn decode(source: impl io::BufRead + io::Seek) -> Result<Self, DecodingError> {
        let mut decoder = Decoder::new(source);
        decoder.set_transformations(Transformations::EXPAND);
        let mut reader = decoder.read_info()?;
        let too_large = || io::Error::other("too large for this machine");
        let mut bytes = vec![0; reader.output_buffer_size().ok_or_else(too_large)?];
        let frame = reader.next_frame(&mut bytes)?;
        let bytes = &bytes[..frame.buffer_size()];
        let (levels, numbers): (u16, Vec<u16>) = match frame.bit_depth {
            BitDepth::Sixteen => {
                let pairs = bytes.chunks_exact(2);
                (u16::MAX, pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect())
            }
            _ => (255, bytes.iter().map(|&byte| byte.into()).collect()),
        };
        let samples = frame.color_type.samples();
        let channels = if samples < 3 { 1 } else { 3 };
        let channel =
            |which: usize| numbers.iter().skip(which).step_by(samples).map(|&n| f64::from(n));
        let values = (0..channels).flat_map(channel).map(|n| n / f64::from(levels)).collect();
        Ok(Self { shape: [frame.height as usize, frame.width as usize], values, levels })
    }

    /// Replaces a file by this picture, as PNG. Readers find the old or the new one.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        replace(path, &self.encoded()?)
    }

    fn encoded(&self) -> io::Result<Vec<u8>> {
        let (channels, points) = (self.channels(), self.points());
        let mut samples = Vec::with_capacity(2 * self.values.len());
        for at in 0..points {
            for channel in 0..channels {
                let value = self.values[channel * points + at].clamp(0.0, 1.0);
                let number = (value * f64::from(self.levels)).round() as u16;
                let bytes = number.to_be_bytes();
                samples.extend_from_slice(&bytes[usize::from(self.levels == 255)..]);
            }
        }
        let mut file = Vec::new();
        // Their sizes came from a file, or are small.
        let [height, width] = self.shape.map(|len| len as u32);
        let mut encoder = Encoder::new(&mut file, width, height);
        encoder.set_color(if channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
        let depth = if self.levels == 255 { BitDepth::Eight } else { BitDepth::Sixteen };
        encoder.set_depth(depth);
        encoder.write_header()?.write_image_data(&samples)?;
        Ok(file)
    }
}

/// The colour at a point; the picture's height is 1.
fn scene(y: f64, x: f64) -> [f64; 3] {
    let from = |v: f64, u: f64| ((y - v).powi(2) + (x - u).powi(2)).sqrt();
    for (v, u, radius, colour) in [
        (0.25, 0.25, 0.13, [0.9, 0.3, 0.1]),
        (0.30, 0.40, 0.09, [0.95, 0.8, 0.2]),
        (0.80, 0.20, 0.05, [0.1, 0.4, 0.7]),
        (0.80, 0.34, 0.03, [0.1, 0.4, 0.7]),
        (0.80, 0.44, 0.015, [0.1, 0.4, 0.7]),
    ] {
        if from(v, u) < radius {
            return colour;
        }
    }
    // Spokes, narrower towards the middle.
    if from(0.35, 0.95) < 0.28 {
        let turn = (y - 0.35).atan2(x - 0.95);
        return if (18.0 * turn).sin() > 0.0 { [0.95; 3] } else { [0.1, 0.1, 0.15] };
    }
    // Bars, narrower to the right.
    if (0.72..0.9).contains(&y) && (0.62..1.25).contains(&x) {
        let bars = 10.0 * (x - 0.62) + 22.0 * (x - 0.62).powi(2);
        return if bars.fract() < 0.5 { [0.1, 0.15, 0.1] } else { [0.9, 0.95, 0.85] };
    }
    [0.35 + 0.3 * y, 0.55 + 0.1 * x, 0.75 - 0.35 * y]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_pictures() {
        for (levels, channels) in [(255, 1), (255, 3), (u16::MAX, 1), (u16::MAX, 3)] {
            let values = (0..15 * channels).map(|i| f64::from(i) / 50.0).collect();
            let mut picture = Picture { shape: [3, 5], values, levels };
            picture.round();
            let read = Picture::decode(io::Cursor::new(picture.encoded().unwrap())).unwrap();
            assert_eq!(read, picture);
        }
        assert!(Picture::decode(io::Cursor::new(b"P6 3 5 255")).is_err());
    }

    #[test]
    fn files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        std::fs::write(&path, "another").unwrap();
        let picture = Picture::made([6, 8]);
        picture.write(&path).unwrap();
        assert_eq!(Picture::read(&path).unwrap(), picture);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn noise_of_a_tenth_is_twenty_decibels() {
        let sharp = Picture { shape: [1, 2], values: vec![0.0, 1.0], levels: 255 };
        let other = Picture { values: vec![0.05, 0.95], ..sharp.clone() };
        assert!((sharp.signal_to_noise(&other) - 20.0).abs() < 1e-9);
    }
}
