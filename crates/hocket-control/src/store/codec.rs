//! Numbers, texts and addresses as bytes, of fixed width and lowest byte first.

use std::net::IpAddr;

use hocket_base::id::narrow;

/// Appends values.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn small(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn word(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.small(narrow(text.len()));
        self.0.extend(text.as_bytes());
    }

    pub(super) fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.byte(4);
                self.0.extend(address.octets());
            }
            IpAddr::V6(address) => {
                self.byte(6);
                self.0.extend(address.octets());
            }
        }
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.small(narrow(items.len()));
        items.iter().for_each(|item| write(self, item));
    }
}

/// Takes values; `None` where the bytes are none.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn word(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let count = self.small()?;
        let bytes = self.bytes(count as usize)?;
        Some(std::str::from_utf8(bytes).ok()?.to_owned())
    }

    pub(super) fn address(&mut self) -> Option<IpAddr> {
        match self.byte()? {
            4 => Some(self.array::<4>()?.into()),
            6 => Some(self.array::<16>()?.into()),
            _ => None,
        }
    }

    pub(super) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.small()?;
        // Each item takes a byte at least.
        if count as usize > self.0.len() {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }
}
