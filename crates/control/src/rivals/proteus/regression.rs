//! A straight line through points, and how far the points are from it, without keeping them.

/// Sums over points, whose second coordinates count from the first point's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Regression {
    count: f64,
    base: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Regression {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        if self.count <= 0.0 {
            self.base = y;
        }
        let y = y - self.base;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// Returns the number of points.
    pub(super) const fn count(&self) -> u32 {
        self.count as u32
    }

    /// The mean of the second coordinates.
    pub(super) fn mean(&self) -> f64 {
        self.base + self.y / self.count.max(1.0)
    }

    /// Squared differences from the means: of x, of both, and of y.
    fn squares(&self) -> [f64; 3] {
        let count = self.count.max(1.0);
        [
            self.xx - self.x * self.x / count,
            self.xy - self.x * self.y / count,
            self.yy - self.y * self.y / count,
        ]
    }

    /// The slope of the line; 0 if there is none.
    pub(super) fn slope(&self) -> f64 {
        let [xx, xy, _] = self.squares();
        if xx > 0.0 { xy / xx } else { 0.0 }
    }

    /// The standard deviation of the second coordinates.
    pub(super) fn deviation(&self) -> f64 {
        let [_, _, yy] = self.squares();
        libm::sqrt((yy / self.count.max(1.0)).max(0.0))
    }

    /// The root of the mean squared distance from the line.
    pub(super) fn error(&self) -> f64 {
        let [_, xy, yy] = self.squares();
        libm::sqrt(((yy - self.slope() * xy) / self.count.max(1.0)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_points_beside_it_an_error() {
        let mut line = Regression::default();
        for x in 0..10_u32 {
            line.add(f64::from(x), 1e5 + 3.0 * f64::from(x));
        }
        assert!((line.slope() - 3.0).abs() < 1e-9 && line.error() < 1e-6);
        // The variance of 0 to 9 is 8.25.
        assert!((line.deviation() - 3.0 * 8.25_f64.sqrt()).abs() < 1e-9);
        assert!((line.mean() - 100_013.5).abs() < 1e-9);
        for x in 0..10_u32 {
            line.add(f64::from(x), 1e5 + 3.0 * f64::from(x) + 2.0);
        }
        assert!((line.slope() - 3.0).abs() < 1e-9 && (line.error() - 1.0).abs() < 1e-9);
        assert_eq!(line.count(), 20);
        assert!(Regression::default().slope().abs() < 1e-9);
    }
}
