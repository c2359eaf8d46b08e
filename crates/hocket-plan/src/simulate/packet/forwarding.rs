//! Which flits leave over a link, where they come to, and what follows when a tail has left.

use super::engine::{Engine, Event};
use super::options::{CREDIT, SWITCH};
use super::ports::{Limit, NONE, Packet, Ports, Train};
use crate::id::TransferId;

impl Engine<'_> {
    /// The next flit of a link, or all of a packet.
    pub(super) fn send(&mut self, link: u32) {
        let now = self.now;
        let output = &self.ports.outputs[link as usize];
        if output.train.is_some() {
            return;
        }
        if output.free > now {
            self.serve_at(link, now);
            return;
        }
        let limit = self.ports.limits[output.src as usize];
        if let Some(Limit { free, .. }) = limit
            && free > now
        {
            self.serve_at(link, free);
            return;
        }
        let channels = self.ports.channels;
        let first = (link * channels) as usize;
        let mut best: Option<(u32, u32, u32)> = None;
        let mut held = 0;
        let mut next = u64::MAX;
        for channel in &self.ports.channel[first..first + channels as usize] {
            let requester = channel.holder;
            if requester == NONE {
                continue;
            }
            held += 1;
            let Some(time) = self.ports.next_flit(requester) else {
                continue;
            };
            if time > now {
                next = next.min(time);
                continue;
            }
            let port = self.ports.port(requester);
            let turn = match self.ports.as_queue(requester) {
                Some(_) => 0,
                None => Ports::behind(self.ports.turns[port as usize], requester % channels),
            };
            let key = (Ports::behind(output.turn, port), turn, requester);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        let Some((_, _, requester)) = best else {
            if next != u64::MAX {
                self.serve_at(link, next);
            }
            return;
        };
        let is_alone = held == 1 && output.waiting.is_empty() && limit.is_none();
        if is_alone && self.can_go_at_once(link, requester) {
            self.send_train(link, requester);
        } else {
            self.send_flit(link, requester);
        }
    }

    /// Returns whether what is left of a packet needs no look until its tail leaves: all of it is there, it ends where
    /// the link does, and nothing lies before it in the buffer there.
    fn can_go_at_once(&self, link: u32, requester: u32) -> bool {
        if self.ports.as_queue(requester).is_none() {
            return false;
        }
        let packet = self.ports.head(requester);
        let here = link * self.ports.channels + self.ports.grants[requester as usize].channel;
        self.follow(packet.transfer, packet.at).is_none()
            && self.ports.buffers[here as usize].packets.is_empty()
    }

    fn send_train(&mut self, link: u32, requester: u32) {
        let packet = *self.ports.head(requester);
        let sent = self.ports.grants[requester as usize].sent;
        let output = &mut self.ports.outputs[link as usize];
        let start = self.now;
        let flits = packet.flits - sent;
        let last = start.saturating_add(output.flit.saturating_mul(u64::from(flits - 1)));
        output.train = Some(Train { start, flits });
        output.turn = self.ports.links + link + 1;
        output.free = last.saturating_add(output.flit);
        self.started(packet.transfer, start);
        // Where that is too late to be told, the run ends there.
        self.queue
            .push(last.saturating_add(1), Event::TrainEnd(link));
    }

    pub(super) fn end_train(&mut self, link: u32) {
        let output = &mut self.ports.outputs[link as usize];
        let Some(train) = output.train else {
            return;
        };
        let last = train.start + output.flit * u64::from(train.flits - 1);
        if last + 1 != self.now {
            return;
        }
        output.train = None;
        let requester = self.ports.queue_of(link);
        self.count(link, requester, u64::from(train.flits), train.start);
        self.leave(link, requester, last);
    }

    fn send_flit(&mut self, link: u32, requester: u32) {
        let now = self.now;
        let packet = *self.ports.head(requester);
        let port = self.ports.port(requester);
        let output = &mut self.ports.outputs[link as usize];
        output.turn = port + 1;
        output.free = now + output.flit;
        let arrival = now + SWITCH + output.flight;
        let source = output.src as usize;
        if let Some(limit) = &mut self.ports.limits[source] {
            limit.free = now + limit.flit;
            limit.turn = link + 1;
        }
        let grant = &mut self.ports.grants[requester as usize];
        grant.sent += 1;
        let (sent, number) = (grant.sent, grant.channel);
        if self.ports.as_queue(requester).is_some() {
            if sent == 1 {
                self.started(packet.transfer, now);
            }
        } else {
            self.ports.turns[port as usize] = requester % self.ports.channels + 1;
            self.ports.buffers[requester as usize].arrivals.pop_front();
            self.ports.channel[requester as usize].give_back(now, 1);
            self.note_room(port);
        }
        self.count(link, requester, 1, now);
        self.land(link, number, &packet, sent, arrival);
        if sent == packet.flits {
            self.leave(link, requester, now);
        }
        let first = (link * self.ports.channels) as usize;
        let channels = &self.ports.channel[first..first + self.ports.channels as usize];
        let holders = channels.iter().filter(|channel| channel.holder != NONE);
        let next = holders.filter_map(|channel| self.ports.next_flit(channel.holder));
        if let Some(next) = next.min() {
            self.serve_at(link, next);
        }
    }

    /// The `sent`th flit of a packet is on its way to the buffer at its link's end.
    fn land(&mut self, link: u32, number: u32, packet: &Packet, sent: u32, arrival: u64) {
        let here = link * self.ports.channels + number;
        let buffer = &mut self.ports.buffers[here as usize];
        let (plan, topology) = (self.verified.plan(), self.verified.topology());
        let transfer = TransferId(packet.transfer);
        let next = self
            .verified
            .routes()
            .follow(plan, topology, transfer, packet.at);
        // The destination takes out at once what nothing lies before.
        let is_taken_out = next.is_none()
            && !buffer.packets.back().is_some_and(|last| {
                sent == 1 || last.transfer == packet.transfer && last.link == NONE
            });
        if is_taken_out {
            return;
        }
        buffer.arrivals.push_back(arrival);
        if sent == 1 {
            let (link, at) = next.map_or((NONE, packet.at), |(link, at)| (link.0, at));
            buffer.packets.push_back(Packet {
                at,
                link,
                ..*packet
            });
            if buffer.packets.len() == 1 {
                self.queue.push(arrival, Event::Head(here));
            }
            return;
        }
        let front = buffer.packets[0].link;
        if front == NONE {
            // It is this one, if it is alone.
            if buffer.packets.len() == 1 && sent == packet.flits {
                self.queue.push(arrival, Event::Head(here));
            }
        } else if buffer.arrivals.len() == 1 && self.ports.grants[here as usize].channel != NONE {
            self.serve_at(front, arrival);
        }
    }

    /// A packet that had to wait in a buffer is whole at its destination.
    pub(super) fn take_out(&mut self, requester: u32) {
        let buffer = &mut self.ports.buffers[requester as usize];
        let packet = buffer
            .packets
            .pop_front()
            .expect("a packet is at the front");
        buffer.arrivals.drain(..packet.flits as usize);
        self.ports.channel[requester as usize].give_back(self.now, packet.flits);
        self.note_room(self.ports.port(requester));
        self.arrive(&packet, self.now + u64::from(packet.flits == 1));
        self.next_in_buffer(requester, self.now + 1);
    }

    /// Room is given back to the sender of a link, who may wait for it.
    fn note_room(&mut self, link: u32) {
        if self.ports.outputs[link as usize].is_short {
            self.allocate_at(link, self.now + CREDIT);
        }
    }

    /// Moves what lies behind a packet that has left a buffer to its front, at `time` or later.
    fn next_in_buffer(&mut self, requester: u32, time: u64) {
        let buffer = &self.ports.buffers[requester as usize];
        let Some(packet) = buffer.packets.front() else {
            return;
        };
        // What is to be taken out comes there whole: until it is, `land` sees to it.
        let whole = (packet.flits - 1) as usize;
        let at = if packet.link == NONE { whole } else { 0 };
        if let Some(&arrival) = buffer.arrivals.get(at) {
            self.queue.push(arrival.max(time), Event::Head(requester));
        }
    }

    /// A packet's tail has left over a link at cycle `last`, now or just before.
    fn leave(&mut self, link: u32, requester: u32, last: u64) {
        let now = self.now;
        let packet = *self.ports.head(requester);
        let grant = &mut self.ports.grants[requester as usize];
        let here = (link * self.ports.channels + grant.channel) as usize;
        grant.channel = NONE;
        self.ports.channel[here].holder = NONE;
        let usage = &mut self.uses[link as usize];
        usage.bytes = usage.bytes.saturating_add(packet.bytes);
        usage.messages += u64::from(packet.is_last);
        if self.ports.buffers[here]
            .packets
            .back()
            .is_none_or(|waits| (waits.transfer, waits.link) != (packet.transfer, NONE))
            && self.follow(packet.transfer, packet.at).is_none()
        {
            let tail = last + SWITCH + self.ports.outputs[link as usize].flight;
            self.ports.channel[here].give_back(tail, packet.flits);
            self.arrive(&packet, tail + u64::from(packet.flits == 1));
        }
        let heads = (last + 1).max(now);
        match self.ports.as_queue(requester) {
            Some(queue) => {
                let messages = &mut self.ports.queues[queue as usize];
                messages.bytes_left -= packet.bytes;
                messages.front = None;
                if messages.bytes_left > 0 {
                    self.next_packet(queue);
                } else {
                    messages.messages.pop_front();
                    if messages.messages.is_empty() {
                        self.reallocate(link, heads);
                        return;
                    }
                    self.next_message(queue);
                }
                self.come_to_front(requester, heads);
            }
            None => {
                self.ports.buffers[requester as usize].packets.pop_front();
                self.next_in_buffer(requester, heads);
            }
        }
        self.reallocate(link, heads);
    }

    fn come_to_front(&mut self, requester: u32, time: u64) {
        if time == self.now {
            self.head(requester);
        } else {
            self.queue.push(time, Event::Head(requester));
        }
    }

    /// A channel of a link is free from `time` on.
    fn reallocate(&mut self, link: u32, time: u64) {
        if self.ports.outputs[link as usize].waiting.is_empty() {
            return;
        }
        if time == self.now {
            self.ask(link);
        } else {
            self.allocate_at(link, time);
        }
    }
}
