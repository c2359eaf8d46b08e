//! How the controller decides.

/// How flows are given paths, and when others move for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Algorithm 1 (section 3.3) for each flow as it comes: the path whose busiest link carries least.
    /// Nothing moves but what has lost its path. Theorem 2 holds as long as no flow ends.
    Greedy,
    /// The same, and flows move along Kempe chains where a link would carry more than its share: the flows
    /// of its ToR spread evenly over the ToR's links, rounded up. On three levels, and where links
    /// between switches differ in bandwidth, it is [`Policy::Greedy`].
    #[default]
    Balanced,
}

/// The knobs of [`super::Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How flows are given paths.
    pub policy: Policy,
    /// The price of a move: as many flows as may move to take one too many from a link. Where it takes
    /// more, the link keeps what it has until flows that end make it cheaper. `u32::MAX`: any number.
    pub most_moves: u32,
    /// Kempe chains that are tried, of which the cheapest is taken.
    pub tries: u32,
    /// Links that are relieved at each side of a flow that ends, where shares have fallen: others wait for the
    /// next. `u32::MAX`: all, so that one event may move many flows.
    pub reliefs: u32,
    /// By how many flows a link may exceed its share before others move.
    pub slack: u16,
    /// Rate control at hosts (section 8): each flow is told the equal share of the fullest link on its path,
    /// plus this many parts per million; `None`: no rates.
    pub rate_slack_ppm: Option<u32>,
    /// Coming events that [`super::Event::Prepare`] foresees; 0: none.
    pub look_ahead: u32,
    /// Whether [`super::Event::Prepare`] computes paths for the failure of each link and each switch.
    pub failover: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            most_moves: 8,
            tries: 16,
            reliefs: 1,
            slack: 0,
            rate_slack_ppm: None,
            look_ahead: 0,
            failover: false,
        }
    }
}
