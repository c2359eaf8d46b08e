//! What a byte costs on each link.

use crate::bound::network::ArcNetwork;
use crate::units::whole;

/// The price of a byte on each arc: a power of how long the arc is busy, over its bandwidth.
///
/// With these prices the cheapest way of a byte is the one on which it adds least to the sum, over all arcs, of the
/// next higher power: the higher the power, the closer that is to how long the busiest arc sends.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// Seconds per byte.
    pace: Vec<f64>,
    /// Price of an arc that is as busy as the busiest.
    full: Vec<f64>,
    /// Bytes over each arc.
    load: Vec<f64>,
    /// Of a byte, at least 1.
    price: Vec<u64>,
    /// How long the busiest arc is thought to send [s].
    scale: f64,
    /// The power is two to this one.
    doublings: u32,
}

/// The price of a byte on the fastest arc while it is as busy as the busiest.
const UNIT: f64 = (1u64 << 20) as f64;
/// How much cheaper an idle arc is.
const IDLE: f64 = 1.0 / 1024.0;
/// An arc that is busier than was thought is dearer by this at most.
const DEAREST: f64 = 4096.0;
/// Arcs slower than the fastest by more than this are priced as if by this.
const SLOWEST: f64 = 16_384.0;

impl Prices {
    /// Nothing is on any arc yet. Arcs between switches are taken to be slower than they are by the share `spare`.
    pub(crate) fn new(network: &ArcNetwork, spare: f64) -> Self {
        let arcs = network.arcs();
        let fastest = arcs.iter().map(|arc| arc.capacity).max().unwrap_or(1) as f64;
        let slowness = arcs
            .iter()
            .map(|arc| (fastest / arc.capacity as f64).min(SLOWEST));
        let full: Vec<f64> = slowness.map(|slowness| slowness * UNIT).collect();
        let pace = arcs.iter().map(|arc| {
            let inner = !network.is_npu(arc.src) && !network.is_npu(arc.dst);
            (1.0 + if inner { spare } else { 0.0 }) / arc.capacity as f64
        });
        let mut prices = Self {
            pace: pace.collect(),
            full,
            load: vec![0.0; arcs.len()],
            price: vec![0; arcs.len()],
            scale: f64::INFINITY,
            doublings: 0,
        };
        prices.set(f64::INFINITY, 0);
        prices
    }

    /// Another power, and another thought of how long the busiest arc sends.
    pub(crate) fn set(&mut self, scale: f64, doublings: u32) {
        self.scale = scale;
        self.doublings = doublings;
        for arc in 0..self.load.len() {
            self.price[arc] = self.at_load(arc);
        }
    }

    /// So many bytes more on an arc, or fewer.
    #[inline]
    pub(crate) fn add(&mut self, arc: u32, bytes: f64) {
        self.load[arc as usize] += bytes;
        self.price[arc as usize] = self.at_load(arc as usize);
    }

    /// Returns how long the busiest arc sends [s].
    pub(crate) fn busiest(&self) -> f64 {
        let busy = self
            .load
            .iter()
            .zip(&self.pace)
            .map(|(load, pace)| load * pace);
        busy.fold(0.0, f64::max)
    }

    /// Seconds per byte of each arc.
    pub(crate) fn pace(&self) -> &[f64] {
        &self.pace
    }

    /// Returns the price of a byte on each arc, at least 1.
    #[inline]
    pub(crate) fn all(&self) -> &[u64] {
        &self.price
    }

    /// Returns what a byte would cost on an arc with so many bytes more.
    pub(crate) fn after(&self, arc: u32, bytes: f64) -> f64 {
        self.of_load(arc as usize, self.load[arc as usize] + bytes)
    }

    #[inline]
    fn at_load(&self, arc: usize) -> u64 {
        whole(self.of_load(arc, self.load[arc])) + 1
    }

    #[inline]
    fn of_load(&self, arc: usize, load: f64) -> f64 {
        let mut power = load * self.pace[arc] / self.scale;
        for _ in 0..self.doublings {
            power *= power;
        }
        self.full[arc] * (power.min(DEAREST) + IDLE)
    }
}
