//! Whether a series of measurements stays level.
//!
//! The slope is that of Theil and Sen: the median of the slopes between all pairs of points. Up to 29 % of the points
//! may lie anywhere without moving it far, so a compiler that takes the processors for a minute is not a leak. Memory,
//! files and threads begin again with each process, so their points come life by life, and two questions are asked: do
//! they rise within a life, and does each life stand higher than the one before?

/// Seconds since the start, and the value then.
pub(crate) type Point = (f64, f64);

/// How many points a slope needs.
const FEWEST: usize = 8;

/// Rises up to the larger of the two pass as level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// A share of the median.
    pub(crate) share: f64,
    /// In the unit of the series, for what is small.
    pub(crate) absolute: f64,
}

/// Where a series stands, and how it moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// The median.
    pub(crate) level: f64,
    /// By how much the line rises from the first point to the last.
    pub(crate) rise: f64,
    /// By how much it rises in an hour.
    pub(crate) per_hour: f64,
}

impl Trend {
    /// Returns the trend of points, unless there are too few.
    pub(crate) fn of(points: &[Point]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        if points.len() < FEWEST {
            return None;
        }
        let slope = slope(points)?;
        let level = median(points.iter().map(|it| it.1).collect())?;
        Some(Self { level, rise: slope * (last.0 - first.0), per_hour: slope * 3600.0 })
    }

    /// Returns the trend within lives: of the one whose rise is the median. A leak shows in every life, noise does not.
    pub(crate) fn within(lives: &[Vec<Point>]) -> Option<Self> {
        let mut trends: Vec<Self> = lives.iter().filter_map(|life| Self::of(life)).collect();
        trends.sort_by(|a, b| a.rise.total_cmp(&b.rise));
        // Of two, the steeper one.
        trends.get(trends.len() / 2).copied()
    }

    /// Returns the trend of the medians of lives, from the first life to the last.
    pub(crate) fn between(lives: &[Vec<Point>]) -> Option<Self> {
        let middle = |life: &Vec<Point>| {
            let value = median(life.iter().map(|it| it.1).collect())?;
            Some((median(life.iter().map(|it| it.0).collect())?, value))
        };
        let middles: Vec<Point> = lives.iter().filter_map(middle).collect();
        let slope = slope(&middles)?;
        let (first, last) = (middles.first()?, middles.last()?);
        let level = median(middles.iter().map(|it| it.1).collect())?;
        Some(Self { level, rise: slope * (last.0 - first.0), per_hour: slope * 3600.0 })
    }

    /// Returns whether it rises no more than is tolerated; a fall is level too.
    pub(crate) fn is_level(&self, tolerance: Tolerance) -> bool {
        self.rise <= (self.level * tolerance.share).max(tolerance.absolute)
    }
}

/// Returns the median, the mean of the middle two where the number is even.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get(values.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

/// Returns the median of the slopes between all pairs of points.
fn slope(points: &[Point]) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(at, from)| {
        let later = points.iter().skip(at + 1).filter(|to| to.0 > from.0);
        later.map(|to| (to.1 - from.1) / (to.0 - from.0))
    });
    median(pairs.collect())
}
