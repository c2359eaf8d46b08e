//! Node groups: which NPUs form a node, so that algorithms can tell what is near from what is far.

use super::{Topology, TopologyError, name_fault};
use crate::id::NpuId;

impl Topology {
    /// Returns the NPUs of each node in the order stated, every NPU in one; empty where no nodes are stated.
    pub fn groups(&self) -> &[Vec<NpuId>] {
        &self.groups
    }

    /// Returns the same network whose NPUs form these nodes; none at all for no groups.
    ///
    /// Where nodes are alike, NPUs at the same place of their groups should be too: algorithms pair them.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for an empty group, or an NPU that is not there, is in none or in two.
    ///
    /// # Examples
    /// ```
    /// use hocket_base::id::NpuId;
    /// use hocket_topology::build;
    /// use hocket_base::units::{Bandwidth, Time};
    ///
    /// let bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    /// let ring = build::ring(4, bandwidth, Time::ZERO, build::RingWays::Both)?;
    /// let nodes = vec![vec![NpuId(0), NpuId(1)], vec![NpuId(3), NpuId(2)]];
    /// assert_eq!(ring.with_groups(nodes.clone())?.groups(), nodes);
    /// # Ok::<(), hocket_topology::TopologyError>(())
    /// ```
    pub fn with_groups(mut self, groups: Vec<Vec<NpuId>>) -> Result<Self, TopologyError> {
        let wrong = |group: usize, why: String| TopologyError::BadParameter {
            what: format!("group {group}"),
            why,
        };
        let mut found: Vec<Option<usize>> = vec![None; self.npu_count()];
        for (i, group) in groups.iter().enumerate() {
            if group.is_empty() {
                return Err(wrong(
                    i,
                    "has no NPU; give it one or leave it out".to_owned(),
                ));
            }
            for npu in group {
                let Some(place) = found.get_mut(npu.index()) else {
                    let last = self.npu_count() - 1;
                    return Err(wrong(
                        i,
                        format!("there is no NPU {npu}; NPUs are 0 to {last}"),
                    ));
                };
                if let Some(other) = place.replace(i) {
                    let name = &self.device(npu.device()).name;
                    let why = format!("has {name:?}, which is in group {other} too; leave one out");
                    return Err(wrong(i, why));
                }
            }
        }
        let lost = found.iter().position(Option::is_none);
        if let (Some(lost), false) = (lost, groups.is_empty()) {
            return Err(TopologyError::BadParameter {
                what: "groups".to_owned(),
                why: format!(
                    "{:?} is in none; put every NPU in a group",
                    self.devices[lost].name
                ),
            });
        }
        self.groups = groups;
        Ok(self)
    }

    /// Returns the same network under another name.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for a name that cannot be shown in a line.
    pub fn with_name(mut self, name: impl Into<String>) -> Result<Self, TopologyError> {
        let name = name.into();
        if let Some(why) = name_fault(&name) {
            return Err(TopologyError::BadParameter {
                what: "name of the topology".to_owned(),
                why,
            });
        }
        self.name = name;
        Ok(self)
    }
}

/// Returns the groups that are left of some where NPUs have got new numbers, or are gone.
pub(super) fn renumbered(
    groups: &[Vec<NpuId>],
    new: impl Fn(NpuId) -> Option<NpuId>,
) -> Vec<Vec<NpuId>> {
    let left = groups
        .iter()
        .map(|group| group.iter().filter_map(|&npu| new(npu)).collect());
    left.filter(|group: &Vec<NpuId>| !group.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::id::DeviceId;
    use crate::units::{Bandwidth, Time};

    fn four() -> Topology {
        let bandwidth = Bandwidth::from_bytes_per_second(10).expect("positive");
        build::fully_connected(4, bandwidth, Time::ZERO).expect("a network")
    }

    fn npus(numbers: &[u32]) -> Vec<NpuId> {
        numbers.iter().copied().map(NpuId).collect()
    }

    #[test]
    fn groups_follow_what_is_left() {
        let nodes = vec![npus(&[2, 0]), npus(&[1]), npus(&[3])];
        let network = four().with_groups(nodes).expect("groups");
        let left = network
            .without(&[DeviceId(1)], &[])
            .expect("three are left");
        assert_eq!(left.groups(), [npus(&[1, 0]), npus(&[2])]);
        let none = four().without(&[DeviceId(1)], &[]).expect("three are left");
        assert!(none.groups().is_empty());
    }

    #[test]
    fn wrong_groups_are_refused() {
        let cases: [(&[&[u32]], &str); 4] = [
            (&[&[0, 1, 2, 3], &[]], "group 1: has no NPU"),
            (
                &[&[0, 1], &[2, 4]],
                "group 1: there is no NPU 4; NPUs are 0 to 3",
            ),
            (&[&[0, 1], &[2, 3, 1]], "\"npu1\", which is in group 0 too"),
            (&[&[0, 1], &[2]], "groups: \"npu3\" is in none"),
        ];
        for (groups, says) in cases {
            let groups = groups.iter().map(|group| npus(group)).collect();
            let error = four().with_groups(groups).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(four().with_groups(Vec::new()).is_ok());
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(four().with_name("mine").expect("a name").name(), "mine");
        assert!(four().with_name("two\nlines").is_err());
    }
}
