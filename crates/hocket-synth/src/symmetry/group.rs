//! A group that shifts a network onto itself, every NPU to every other in at most one way.

use super::NoSymmetry;
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::topology::{Device, Topology};

/// Where a generator takes every device and every link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    /// By device.
    pub devices: Vec<u32>,
    /// By link.
    pub links: Vec<u32>,
}

/// A product of cyclic groups that acts on the devices and links of a network, and on its NPUs freely: for every two
/// NPUs at most one element takes the first to the second. If one does for all two, it is regular. An element is a number,
/// whose digits say how often each generator is applied; the first digit varies fastest. Element 0 leaves all where it is.
#[derive(Clone, Debug)]
pub struct Symmetry {
    orders: Vec<u32>,
    elements: u32,
    /// Where each element takes the first NPU of each orbit, one orbit after the other.
    npus: Vec<NpuId>,
    /// The place of each NPU among `npus`.
    place: Vec<u32>,
    /// For each generator where links are taken by it, by it twice, by it four times, and so on.
    powers: Vec<Vec<Vec<u32>>>,
    orbits: Orbits,
}

/// The links that the group takes to each other.
#[derive(Clone, Debug, Default)]
pub struct Orbits {
    /// Of each link.
    of: Vec<u32>,
    /// The first link of each.
    first: Vec<LinkId>,
    sizes: Vec<u32>,
}

impl Symmetry {
    /// Checks that generators make such a group that is regular, by looking at the network alone.
    ///
    /// Each must take devices to devices and links to links that are alike, and come back after as many times as
    /// its order says. They must commute, and take the first NPU to every other in one way.
    ///
    /// # Errors
    /// [`NoSymmetry`] with what is wrong.
    pub fn new(
        topology: &Topology,
        generators: &[(u32, Shift)],
        first: NpuId,
    ) -> Result<Self, NoSymmetry> {
        let found = Self::free(topology, generators, first)?;
        match found.len() == topology.npu_count() {
            true => Ok(found),
            false => Err(NoSymmetry::Regular),
        }
    }

    /// As [`Symmetry::new`], but NPUs may be of several orbits.
    pub(super) fn free(
        topology: &Topology,
        generators: &[(u32, Shift)],
        first: NpuId,
    ) -> Result<Self, NoSymmetry> {
        for (_, shift) in generators {
            check_shift(topology, shift)?;
        }
        for (i, (order, shift)) in generators.iter().enumerate() {
            for columns in [&shift.devices, &shift.links] {
                if !(0..narrow(columns.len())).eq(power(columns, *order)) {
                    return Err(NoSymmetry::Order { generator: i });
                }
            }
            for (_, other) in &generators[..i] {
                if after(&shift.devices, &other.devices) != after(&other.devices, &shift.devices)
                    || after(&shift.links, &other.links) != after(&other.links, &shift.links)
                {
                    return Err(NoSymmetry::Order { generator: i });
                }
            }
        }
        let orders: Vec<u32> = generators.iter().map(|(order, _)| *order).collect();
        let mut npus = Vec::new();
        let mut place = vec![u32::MAX; topology.npu_count()];
        for first in std::iter::once(first).chain(topology.npus()) {
            if place[first.index()] != u32::MAX {
                continue;
            }
            for npu in images(generators, first.0, topology.npu_count())? {
                if place[npu as usize] != u32::MAX {
                    return Err(NoSymmetry::Regular);
                }
                place[npu as usize] = narrow(npus.len());
                npus.push(NpuId(npu));
            }
        }
        Ok(Self {
            orbits: Orbits::new(topology, generators),
            powers: generators.iter().map(powers).collect(),
            elements: orders.iter().product(),
            npus,
            place,
            orders,
        })
    }

    /// Returns how often each generator is applied until all is where it was.
    pub fn orders(&self) -> &[u32] {
        &self.orders
    }

    /// Returns the number of elements: as many as NPUs, if it is regular.
    pub fn len(&self) -> usize {
        self.elements as usize
    }

    /// Returns whether there is no element; there always is one.
    pub fn is_empty(&self) -> bool {
        self.elements == 0
    }

    /// Returns the NPU that an element takes the first one to.
    pub fn npu(&self, element: u32) -> NpuId {
        self.npus[element as usize]
    }

    /// Returns the first NPU of each orbit.
    pub(super) fn firsts(&self) -> impl ExactSizeIterator<Item = NpuId> {
        self.npus.iter().copied().step_by(self.len())
    }

    /// Returns the element that takes the first NPU of its orbit to this one.
    pub fn element(&self, npu: NpuId) -> u32 {
        self.place[npu.index()] % self.elements
    }

    /// Returns what one element after another comes to.
    pub fn sum(&self, a: u32, b: u32) -> u32 {
        self.digits(a, b, |a, b, order| (a + b) % order)
    }

    /// Returns what takes `b` to `a`.
    pub fn difference(&self, a: u32, b: u32) -> u32 {
        self.digits(a, b, |a, b, order| (a + order - b) % order)
    }

    fn digits(&self, mut a: u32, mut b: u32, each: impl Fn(u32, u32, u32) -> u32) -> u32 {
        let (mut result, mut stride) = (0, 1);
        for &order in &self.orders {
            result += stride * each(a % order, b % order, order);
            (a, b, stride) = (a / order, b / order, stride * order);
        }
        result
    }

    /// Where an element takes an NPU.
    pub fn take_npu(&self, element: u32, npu: NpuId) -> NpuId {
        let own = self.element(npu);
        let first = self.place[npu.index()] - own;
        self.npus[(first + self.sum(element, own)) as usize]
    }

    /// Where an element takes a link.
    pub fn take_link(&self, mut element: u32, link: LinkId) -> LinkId {
        let mut link = link.0;
        for (&order, powers) in self.orders.iter().zip(&self.powers) {
            let times = element % order;
            for (bit, power) in powers.iter().enumerate() {
                if times >> bit & 1 == 1 {
                    link = power[link as usize];
                }
            }
            element /= order;
        }
        LinkId(link)
    }

    /// Returns the links that are taken to each other.
    pub fn orbits(&self) -> &Orbits {
        &self.orbits
    }

    /// Returns the NPUs that the generators chosen take the first of each orbit to, these among them.
    pub(super) fn subgroup(&self, chosen: impl Fn(usize) -> bool) -> Vec<NpuId> {
        let is_in = |mut element: u32| {
            self.orders.iter().enumerate().all(|(i, &order)| {
                let digit = element % order;
                element /= order;
                digit == 0 || chosen(i)
            })
        };
        let all = self.npus.iter().copied();
        all.filter(|&npu| is_in(self.element(npu))).collect()
    }
}

impl Orbits {
    fn new(topology: &Topology, generators: &[(u32, Shift)]) -> Self {
        let links = topology.links().len();
        let mut found = Self {
            of: vec![u32::MAX; links],
            ..Self::default()
        };
        let mut stack = Vec::new();
        for link in 0..narrow(links) {
            if found.of[link as usize] != u32::MAX {
                continue;
            }
            let orbit = narrow(found.first.len());
            found.first.push(LinkId(link));
            found.of[link as usize] = orbit;
            stack.push(link);
            let mut size = 0;
            while let Some(link) = stack.pop() {
                size += 1;
                for (_, shift) in generators {
                    let next = shift.links[link as usize];
                    if found.of[next as usize] == u32::MAX {
                        found.of[next as usize] = orbit;
                        stack.push(next);
                    }
                }
            }
            found.sizes.push(size);
        }
        found
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns whether there is none: a network without links.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the orbit of a link.
    pub fn of(&self, link: LinkId) -> u32 {
        self.of[link.index()]
    }

    /// Returns the link that stands for an orbit.
    pub fn first(&self, orbit: u32) -> LinkId {
        self.first[orbit as usize]
    }

    /// Returns how many links an orbit has.
    pub fn size(&self, orbit: u32) -> u32 {
        self.sizes[orbit as usize]
    }
}

/// Checks that a shift takes every device to one that is alike, and every link to a link that is alike between the
/// devices that its ends are taken to; no two to the same.
fn check_shift(topology: &Topology, shift: &Shift) -> Result<(), NoSymmetry> {
    let (devices, links) = (topology.devices(), topology.links());
    if !is_permutation(&shift.devices, devices.len()) || !is_permutation(&shift.links, links.len())
    {
        return Err(NoSymmetry::Regular);
    }
    for (device, &other) in devices.iter().zip(&shift.devices) {
        let other = &devices[other as usize];
        if !are_alike(device, other) {
            return Err(NoSymmetry::Devices {
                a: device.name.clone(),
                b: other.name.clone(),
            });
        }
    }
    for (link, &other) in links.iter().zip(&shift.links) {
        let taken = |device: DeviceId| DeviceId(shift.devices[device.index()]);
        let other = links[other as usize];
        let ends = (taken(link.src), taken(link.dst));
        if ends != (other.src, other.dst)
            || (link.bandwidth, link.latency) != (other.bandwidth, other.latency)
        {
            return Err(NoSymmetry::link(topology, (link.src, link.dst), ends));
        }
    }
    Ok(())
}

/// Returns whether two devices differ in nothing but their names.
pub(super) fn are_alike(a: &Device, b: &Device) -> bool {
    let name = String::new();
    Device {
        name: name.clone(),
        ..a.clone()
    } == Device { name, ..b.clone() }
}

fn is_permutation(column: &[u32], count: usize) -> bool {
    let mut seen = vec![false; count];
    let mut fresh = |&i: &u32| {
        let place = seen.get_mut(i as usize);
        place.is_some_and(|seen| !std::mem::replace(seen, true))
    };
    column.len() == count && column.iter().all(&mut fresh)
}

/// Returns where the elements take an NPU, one of so many.
///
/// # Errors
/// [`NoSymmetry::Regular`] if there are more elements.
fn images(generators: &[(u32, Shift)], npu: u32, most: usize) -> Result<Vec<u32>, NoSymmetry> {
    let mut npus = vec![npu];
    for (order, shift) in generators {
        let before = npus.len();
        for _ in 1..*order {
            let last = npus[npus.len() - before..].to_vec();
            npus.extend(last.iter().map(|&npu| shift.devices[npu as usize]));
            if npus.len() > most {
                return Err(NoSymmetry::Regular);
            }
        }
    }
    Ok(npus)
}

/// Returns first `b`, then `a`.
fn after(a: &[u32], b: &[u32]) -> Vec<u32> {
    b.iter().map(|&i| a[i as usize]).collect()
}

/// Where something is taken by a shift that is applied so often.
fn power(column: &[u32], times: u32) -> Vec<u32> {
    let mut result: Vec<u32> = (0..narrow(column.len())).collect();
    let (mut square, mut left) = (column.to_vec(), times);
    while left > 0 {
        if left & 1 == 1 {
            result = after(&square, &result);
        }
        square = after(&square, &square);
        left /= 2;
    }
    result
}

fn powers((order, shift): &(u32, Shift)) -> Vec<Vec<u32>> {
    let mut powers = vec![shift.links.clone()];
    while 2u64 << (powers.len() - 1) < u64::from(*order) {
        let last = &powers[powers.len() - 1];
        powers.push(after(last, last));
    }
    powers
}
