//! Which heads get a channel of their link, and which links are looked at when.

use super::engine::{Engine, Event};
use super::options::ALLOCATION;
use super::ports::{NONE, Ports};
use crate::id::{fit, narrow};

impl Engine<'_> {
    /// A head asks for a channel of its link.
    pub(super) fn head(&mut self, requester: u32) {
        let link = self.ports.head(requester).link;
        if link == NONE {
            self.take_out(requester);
            return;
        }
        self.ports.outputs[link as usize].waiting.push(requester);
        self.ask(link);
    }

    pub(super) fn wake_allocation(&mut self, link: u32) {
        if self.ports.outputs[link as usize].allocate_at == self.now {
            self.ports.outputs[link as usize].allocate_at = u64::MAX;
            self.ask(link);
        }
    }

    /// Has a link's channels given in this cycle, once.
    pub(super) fn ask(&mut self, link: u32) {
        let output = &mut self.ports.outputs[link as usize];
        if output.asked != self.now {
            output.asked = self.now;
            self.allocate.push(link);
        }
    }

    pub(super) fn allocate_at(&mut self, link: u32, time: u64) {
        let output = &mut self.ports.outputs[link as usize];
        if output.allocate_at > time {
            output.allocate_at = time;
            self.queue.push(time, Event::Allocate(link));
        }
    }

    pub(super) fn wake_service(&mut self, link: u32) {
        if self.ports.outputs[link as usize].serve_at == self.now {
            self.ports.outputs[link as usize].serve_at = u64::MAX;
            self.serve.push(link);
        }
    }

    pub(super) fn serve_at(&mut self, link: u32, time: u64) {
        let output = &mut self.ports.outputs[link as usize];
        let time = time.max(output.free);
        if output.serve_at > time {
            output.serve_at = time;
            self.queue.push(time, Event::Serve(link));
        }
    }

    /// Runs a cycle, after everything has come: channels, then flits.
    pub(super) fn cycle(&mut self) {
        let mut links = std::mem::take(&mut self.allocate);
        for &link in &links {
            self.give_channels(link);
        }
        links.clear();
        self.allocate = links;
        let mut links = std::mem::take(&mut self.serve);
        // Several links may take flits from one port, or share a device's limit.
        let outputs = &self.ports.outputs;
        links.sort_unstable_by_key(|&link| {
            let turn = self.ports.limits[outputs[link as usize].src as usize].map_or(0, |l| l.turn);
            (Ports::behind(turn, link), link)
        });
        for &link in &links {
            self.send(link);
        }
        links.clear();
        self.serve = links;
    }

    /// One round of iSLIP: each free channel offers itself to one head, each head accepts one.
    fn give_channels(&mut self, link: u32) {
        let Self { ports, now, .. } = self;
        let first = (link * ports.channels) as usize;
        let output = &mut ports.outputs[link as usize];
        output.is_short = false;
        if output.waiting.is_empty() {
            return;
        }
        let mut offers = std::mem::take(&mut self.offers);
        let (mut credit, mut is_any_free) = (u64::MAX, false);
        for number in 0..ports.channels {
            let channel = &mut ports.channel[first + number as usize];
            if channel.holder != NONE {
                continue;
            }
            is_any_free = true;
            channel.settle(*now);
            let (room, turn) = (channel.room, channel.turn);
            if let Some(&(time, _)) = channel.credits.front() {
                credit = credit.min(time);
            }
            let waiting = ports.outputs[link as usize].waiting.iter();
            let fits = waiting.filter(|&&requester| ports.head(requester).flits <= room);
            let next = fits.min_by_key(|&&requester| Ports::behind(turn, requester));
            offers.extend(next.map(|&requester| (requester, number)));
        }
        let is_granted = !offers.is_empty();
        while let Some(&(requester, _)) = offers.first() {
            let turn = self.ports.grants[requester as usize].turn;
            let mine = offers.iter().filter(|offer| offer.0 == requester);
            let accepted = mine.min_by_key(|offer| Ports::behind(turn, narrow(first) + offer.1));
            let (_, number) = *accepted.expect("the first offer is one");
            offers.retain(|offer| offer.0 != requester);
            self.grant(link, requester, number);
        }
        self.offers = offers;
        if self.ports.outputs[link as usize].waiting.is_empty() || !is_any_free {
            // Where all channels are held, the next tail to leave has them given again.
            return;
        }
        if is_granted {
            self.allocate_at(link, self.now + 1);
            return;
        }
        self.ports.outputs[link as usize].is_short = true;
        if credit != u64::MAX {
            self.allocate_at(link, credit);
        }
    }

    fn grant(&mut self, link: u32, requester: u32, number: u32) {
        let now = self.now;
        let flits = self.ports.head(requester).flits;
        let channel = &mut self.ports.channel[(link * self.ports.channels + number) as usize];
        channel.holder = requester;
        channel.turn = requester + 1;
        channel.room -= flits;
        let grant = &mut self.ports.grants[requester as usize];
        grant.channel = number;
        grant.from = now + ALLOCATION;
        grant.sent = 0;
        grant.turn = link * self.ports.channels + number + 1;
        let output = &mut self.ports.outputs[link as usize];
        output.waiting.retain(|&other| other != requester);
        self.break_train(link);
        self.serve_at(link, now + ALLOCATION);
    }

    /// Somebody else wants the link: the flits of its train that have not left go one by one.
    fn break_train(&mut self, link: u32) {
        let output = &mut self.ports.outputs[link as usize];
        let Some(train) = output.train.take() else {
            return;
        };
        let gone = (self.now - train.start) / output.flit + 1;
        if gone >= u64::from(train.flits) {
            // All have left; the next cycle notes it.
            output.train = Some(train);
            return;
        }
        output.free = train.start + gone * output.flit;
        let requester = self.ports.queue_of(link);
        self.ports.grants[requester as usize].sent += fit::<u32, _>(gone);
        self.count(link, requester, gone, train.start);
    }
}
