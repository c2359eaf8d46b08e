//! Files of settings in TOML: keys that are asked for by name, each with a check; a key that nobody asked for
//! is an error that names the nearest one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use hocket_control::directory::read_address;
use toml::{Table, Value};

use crate::setup::SetupError;

/// One table of a file.
#[derive(Debug)]
pub struct Section {
    file: PathBuf,
    /// Where in the file: `tls`, `hosts.a`.
    path: String,
    table: Table,
    asked: RefCell<Vec<String>>,
    /// Where the table is not there: what is wrong if another was meant for it.
    meant: Option<SetupError>,
}

impl Section {
    /// Returns the whole file.
    ///
    /// # Errors
    /// [`SetupError`] for a file that cannot be read or is not TOML.
    pub fn read(file: &Path) -> Result<Self, SetupError> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            let name = file.display().to_string();
            SetupError::new(name, error.to_string(), "name a file that can be read")
        })?;
        Self::parse(file, &text)
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// [`SetupError`] for text that is not TOML.
    pub fn parse(file: &Path, text: &str) -> Result<Self, SetupError> {
        let table = Table::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at]
                .iter()
                .filter(|&&b| b == b'\n')
                .count()
                + 1;
            let why = error.message().lines().collect::<Vec<_>>().join(", ");
            let origin = format!("{}, line {line}", file.display());
            SetupError::new(origin, why, "write it in TOML")
        })?;
        Ok(Self {
            file: file.to_owned(),
            path: String::new(),
            table,
            asked: RefCell::default(),
            meant: None,
        })
    }

    /// Returns an error about a key.
    pub fn wrong(
        &self,
        key: &str,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> SetupError {
        SetupError::new(
            format!("{}: {}", self.file.display(), self.name(key)),
            why,
            remedy,
        )
    }

    /// Returns the file, and where in it the table is.
    pub fn origin(&self) -> String {
        match self.path.as_str() {
            "" => self.file.display().to_string(),
            path => format!("{}: {path}", self.file.display()),
        }
    }

    fn name(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.asked.borrow_mut().push(key.to_owned());
        self.table.get(key)
    }

    /// Returns an error about a key that must be there and is not. A key that nobody asked for and that is nearly the
    /// same was meant for it.
    pub fn missing(&self, key: &str, remedy: &str) -> SetupError {
        let meant = self.meant_for(key).or_else(|| self.meant.clone());
        meant.unwrap_or_else(|| self.wrong(key, "it is missing", remedy))
    }

    fn meant_for(&self, key: &str) -> Option<SetupError> {
        let asked = self.asked.borrow();
        let others = self.table.keys().filter(|other| !asked.contains(other));
        let near = others.filter(|other| is_near(other, key));
        let given = near.min_by_key(|other| distance(other, key))?;
        Some(self.unknown(given, &format!("did you mean {key:?}?")))
    }

    fn unknown(&self, key: &str, remedy: &str) -> SetupError {
        SetupError::caused(self.origin(), format!("unknown key {key:?}: {remedy}"))
    }

    /// Text, where the key is there.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn text(&self, key: &str) -> Result<Option<String>, SetupError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(key, "it is not text", "write it in quotes")),
        }
    }

    /// Returns a list of texts, empty where the key is not there.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, SetupError> {
        let remedy = "write [\"...\", \"...\"]";
        let wrong = || self.wrong(key, "it is not a list of texts", remedy);
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
                items.iter().map(text).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// Returns a file, relative to the folder of the settings.
    ///
    /// # Errors
    /// [`SetupError`] if it is not text.
    pub fn path(&self, key: &str) -> Result<Option<PathBuf>, SetupError> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        Ok(self.text(key)?.map(|path| folder.join(path)))
    }

    /// Returns a file that must be named.
    ///
    /// # Errors
    /// [`SetupError`] if it is missing or not text.
    pub fn needed_path(&self, key: &str) -> Result<PathBuf, SetupError> {
        let path = self.path(key)?;
        path.ok_or_else(|| self.missing(key, "name a file"))
    }

    /// Returns whether a switch is on.
    ///
    /// # Errors
    /// [`SetupError`] if it is neither true nor false.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool, SetupError> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(key, "it is not a switch", "write true or false")),
        }
    }

    /// Returns a whole number within bounds.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn number<T: Copy + TryFrom<i64> + PartialOrd + Display>(
        &self,
        key: &str,
        default: T,
        [least, most]: [T; 2],
    ) -> Result<T, SetupError> {
        let Some(value) = self.get(key) else {
            return Ok(default);
        };
        let number = value.as_integer().and_then(|n| T::try_from(n).ok());
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                let given = value.as_integer().map(|given| given.to_string());
                let given = given.unwrap_or_else(|| format!("a {}", value.type_str()));
                let remedy = format!("write a number from {least} to {most}");
                self.wrong(key, format!("{given} is not such a number"), remedy)
            })
    }

    /// Returns a time such as `500 ms`, above 0 and at most a day.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn time(&self, key: &str, default: Duration) -> Result<Duration, SetupError> {
        const UNITS: [(&str, u64); 4] = [
            ("us", 1),
            ("ms", 1_000),
            ("s", 1_000_000),
            ("min", 60_000_000),
        ];
        let Some(text) = self.text(key)? else {
            return Ok(default);
        };
        let micros = scaled(&text, &UNITS).filter(|micros| (1..=86_400_000_000).contains(micros));
        micros.map(Duration::from_micros).ok_or_else(|| {
            self.wrong(
                key,
                format!("{text:?} is not a time"),
                "write such as \"500 ms\"",
            )
        })
    }

    /// Returns a size such as `1 MB`.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn bytes(&self, key: &str, default: u64) -> Result<u64, SetupError> {
        const UNITS: [(&str, u64); 7] = [
            ("B", 1),
            ("kB", 1_000),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
        ];
        let Some(text) = self.text(key)? else {
            return Ok(default);
        };
        scaled(&text, &UNITS).ok_or_else(|| {
            self.wrong(
                key,
                format!("{text:?} is not a size"),
                "write such as \"1 MB\"",
            )
        })
    }

    /// Returns an address and port to listen on or to connect to.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn socket(&self, key: &str) -> Result<Option<SocketAddr>, SetupError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let remedy = "write such as \"127.0.0.1:7400\"";
        let wrong = |_| self.wrong(key, format!("{text:?} is not an address and port"), remedy);
        let socket: SocketAddr = text.parse().map_err(wrong)?;
        Ok(Some(match socket.ip().to_canonical() {
            IpAddr::V4(four) => SocketAddr::new(four.into(), socket.port()),
            // It may have a zone.
            IpAddr::V6(_) => socket,
        }))
    }

    /// Returns an address.
    ///
    /// # Errors
    /// [`SetupError`] if it is something else.
    pub fn address(&self, key: &str) -> Result<Option<IpAddr>, SetupError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let remedy = "write such as \"10.0.0.1\"";
        let address = read_address(&text).map(Some);
        address.map_err(|why| self.wrong(key, format!("{text:?} {why}"), remedy))
    }

    /// One of several words, as its position; the first where the key is not there.
    ///
    /// # Errors
    /// [`SetupError`] for other words.
    pub fn word(&self, key: &str, words: &[&str]) -> Result<usize, SetupError> {
        let Some(text) = self.text(key)? else {
            return Ok(0);
        };
        let found = words.iter().position(|word| *word == text);
        found.ok_or_else(|| {
            let remedy = format!("write one of {}", words.join(", "));
            self.wrong(key, format!("{text:?} is not known"), remedy)
        })
    }

    /// Returns a table in this one, empty where it is not there.
    ///
    /// # Errors
    /// [`SetupError`] if it is not a table.
    pub fn section(&self, key: &str) -> Result<Self, SetupError> {
        match self.get(key) {
            None => Ok(Self {
                meant: self.meant_for(key),
                ..self.inner(key, Table::new())
            }),
            Some(Value::Table(table)) => Ok(self.inner(key, table.clone())),
            Some(_) => {
                let remedy = format!("write [{}] and its keys below", self.name(key));
                Err(self.wrong(key, "it is not a table", remedy))
            }
        }
    }

    /// Returns whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the tables in a table, by name.
    ///
    /// # Errors
    /// [`SetupError`] if something else is among them.
    pub fn sections(&self, key: &str) -> Result<BTreeMap<String, Self>, SetupError> {
        let all = self.section(key)?;
        let names: Vec<String> = all.table.keys().cloned().collect();
        let named = names.into_iter().map(|name| {
            let section = all.section(&name)?;
            Ok((name, section))
        });
        named.collect()
    }

    fn inner(&self, key: &str, table: Table) -> Self {
        Self {
            file: self.file.clone(),
            path: self.name(key),
            table,
            asked: RefCell::default(),
            meant: None,
        }
    }

    /// Refuses keys that nobody asked for.
    ///
    /// # Errors
    /// [`SetupError`] for the first such key.
    pub fn finish(self) -> Result<(), SetupError> {
        let asked = self.asked.borrow();
        let Some(key) = self.table.keys().find(|key| !asked.contains(key)) else {
            return Ok(());
        };
        let nearest = asked.iter().min_by_key(|known| distance(key, known));
        let remedy = match nearest {
            Some(name) if is_near(key, name) => format!("did you mean {name:?}?"),
            Some(_) => {
                let known: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
                let known = known.into_iter().collect::<Vec<_>>();
                format!("keys are {}", known.join(", "))
            }
            None => "remove it".to_owned(),
        };
        Err(self.unknown(key, &remedy))
    }
}

/// Returns a whole number and a unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.checked_mul(*scale)
}

/// Returns whether one is likely the other, mistyped.
fn is_near(one: &str, other: &str) -> bool {
    distance(one, other) <= (one.len().max(other.len()) / 3).max(1)
}

/// Returns how many letters are to be changed, added, left out or swapped with their neighbours.
fn distance(one: &str, other: &str) -> usize {
    let [one, other] = [one, other].map(|text| text.chars().collect::<Vec<_>>());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, &letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &wanted) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(letter != wanted);
            let mut least = changed.min(row[j] + 1).min(rows[i][j + 1] + 1);
            if i > 0 && j > 0 && letter == other[j - 1] && one[i - 1] == wanted {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Section {
        Section::parse(Path::new("a.toml"), text).unwrap()
    }

    #[test]
    fn a_key_that_nobody_asked_for_names_the_nearest() {
        let section = parse("listen = '127.0.0.1:1'\nlaese = '5 s'");
        section.socket("listen").unwrap();
        section.time("lease", Duration::from_secs(1)).unwrap();
        let error = section.finish().unwrap_err().to_string();
        assert_eq!(
            error,
            "a.toml: unknown key \"laese\": did you mean \"lease\"?"
        );
    }

    #[test]
    fn a_key_that_is_missing_is_perhaps_there_under_another_name() {
        let missing = |text: &str| {
            let section = parse(text);
            let path = section.needed_path("fabric");
            let wrong = path.and_then(|_| section.section("tls")?.needed_path("ca"));
            wrong.unwrap_err().to_string()
        };
        assert_eq!(
            missing("fabrc = 'a'"),
            "a.toml: unknown key \"fabrc\": did you mean \"fabric\"?"
        );
        assert_eq!(
            missing("fabric = 'a'\n[tsl]\nca = 'b'"),
            "a.toml: unknown key \"tsl\": did you mean \"tls\"?"
        );
        assert_eq!(
            missing("fabric = 'a'\n[tls]\nac = 'b'"),
            "a.toml: tls: unknown key \"ac\": did you mean \"ca\"?"
        );
        assert_eq!(
            missing("state = 'a'"),
            "a.toml: fabric: it is missing; name a file"
        );
        let section = parse("colour = 'red'");
        section.text("fabric").unwrap();
        section.text("state").unwrap();
        assert_eq!(
            section.finish().unwrap_err().to_string(),
            "a.toml: unknown key \"colour\": keys are fabric, state"
        );
    }

    #[test]
    fn quantities_have_units() {
        let section = parse("a = '500 ms'\nb = '2 MiB'\nc = 5\nd = '1 parsec'\ne = 'x'");
        let second = Duration::from_secs(1);
        assert_eq!(section.time("a", second), Ok(Duration::from_millis(500)));
        assert_eq!(section.bytes("b", 0), Ok(2 << 20));
        assert_eq!(section.number("c", 0, [1_u8, 5]), Ok(5));
        assert_eq!(section.time("none", second), Ok(second));
        let error = section.time("d", second).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.toml: d: \"1 parsec\" is not a time; write such as \"500 ms\""
        );
        let error = section.number("c", 0, [6_u64, 9]).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.toml: c: 5 is not such a number; write a number from 6 to 9"
        );
        assert!(section.socket("e").is_err() && section.flag("e", true).is_err());
    }

    #[test]
    fn text_that_is_not_toml_names_the_line() {
        let error = Section::parse(Path::new("a.toml"), "a = 1\nb = ").unwrap_err();
        assert!(error.to_string().starts_with("a.toml, line 2: "), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }

    #[test]
    fn tables_have_keys_of_their_own() {
        let section = parse("[hosts.a]\nname = 'x'\n[hosts.b]\n");
        let hosts = section.sections("hosts").unwrap();
        assert_eq!(hosts.keys().collect::<Vec<_>>(), ["a", "b"]);
        let error = hosts.into_values().next().unwrap().finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.toml: hosts.a: unknown key \"name\": remove it"
        );
    }
}
