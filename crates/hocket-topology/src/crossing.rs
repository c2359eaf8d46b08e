//! How a message crosses links and devices: the choices that every simulation shares.

/// How a message crosses a device on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switching {
    /// It leaves once it has arrived whole.
    #[default]
    StoreAndForward,
    /// It leaves as it arrives; a link is occupied until its tail has passed.
    CutThrough,
}

/// What a link's latency does to the next message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyModel {
    /// Nothing: the link is occupied for bytes / bandwidth.
    #[default]
    Overlapped,
    /// It delays it: the link is occupied for latency + bytes / bandwidth, as TACOS counts.
    Occupying,
}
