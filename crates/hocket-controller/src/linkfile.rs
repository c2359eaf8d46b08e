//! Links and switches that have failed, as a file says that others write and that is looked at from time to time.
//!
//! ```toml
//! failed = ["spine3", "tor0,spine1"]
//! ```
//!
//! The file says all: what is in it has failed, and what is not in it works. Whoever writes it puts a new file in its
//! place; a file that is empty or half written lacks its key or its last bracket, and changes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hocket_control::server::Input;
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info};

use crate::audit::NAMED;
use crate::cluster::Network;
use crate::server_owner::ServerOwner;

/// Returns the links that a file says have failed, by number.
///
/// # Errors
/// [`SetupError`] for a file that cannot be read or does not name devices and links of the network.
pub fn read(path: &Path, network: &Network) -> Result<BTreeSet<u32>, SetupError> {
    let file = Section::read(path)?;
    if !file.has("failed") {
        return Err(file.missing("failed", "write failed = [\"SWITCH\", \"SWITCH,SWITCH\"]"));
    }
    let mut failed = BTreeSet::new();
    for text in file.texts("failed")? {
        let links = network.links_named(&text);
        let links = links.map_err(|why| file.wrong("failed", why, "name what the fabric has"))?;
        failed.extend(links.iter().map(|link| link.0));
    }
    file.finish()?;
    Ok(failed)
}

/// A file, and what it said last.
#[derive(Debug)]
pub struct LinkFile {
    path: PathBuf,
    network: Arc<Network>,
    failed: BTreeSet<u32>,
    is_broken: bool,
}

/// What a look at the file brings.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// Nothing new.
    Same,
    /// It can be read again, or says something else.
    Changed { fail: Vec<u32>, back: Vec<u32> },
    /// It cannot be read since now.
    Broken(SetupError),
}

impl LinkFile {
    /// Returns a file; links of which the controller knows that they have failed return if the file does not name them.
    pub fn new(path: PathBuf, network: Arc<Network>, failed: BTreeSet<u32>) -> Self {
        Self {
            path,
            network,
            failed,
            is_broken: false,
        }
    }

    fn look(&mut self) -> Seen {
        match read(&self.path, &self.network) {
            Ok(failed) => {
                let was_broken = std::mem::replace(&mut self.is_broken, false);
                let before = std::mem::replace(&mut self.failed, failed);
                if before == self.failed && !was_broken {
                    return Seen::Same;
                }
                Seen::Changed {
                    fail: self.failed.difference(&before).copied().collect(),
                    back: before.difference(&self.failed).copied().collect(),
                }
            }
            Err(_) if self.is_broken => Seen::Same,
            Err(error) => {
                self.is_broken = true;
                Seen::Broken(error)
            }
        }
    }

    /// Tells the server what the file says, now and as often as it changes.
    pub async fn watch(mut self, every: Duration, server_owner: Arc<ServerOwner>) {
        loop {
            let looked = spawn_blocking(move || {
                let seen = self.look();
                (self, seen)
            });
            let Ok((file, seen)) = looked.await else {
                error!("the file of links is looked at no longer");
                return std::future::pending().await;
            };
            self = file;
            self.tell(seen, &server_owner);
            sleep(every).await;
        }
    }

    fn tell(&self, seen: Seen, server_owner: &ServerOwner) {
        server_owner
            .metrics()
            .links_file_broken
            .set(u64::from(self.is_broken));
        let file = self.path.display();
        match seen {
            Seen::Same => {}
            Seen::Changed { fail, back } => {
                let [failed, returned] =
                    [&fail, &back].map(|links| self.network.by_ends(links, NAMED));
                info!(target: "audit", %file, failed, returned, "the file of links says");
                server_owner.tell(Input::LinksReturn { links: back });
                server_owner.tell(Input::LinksFail { links: fail });
            }
            Seen::Broken(why) => {
                error!(%file, %why, "the file of links cannot be taken up; what it said before holds on");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cluster::tests::clos;

    #[test]
    fn a_file_that_is_broken_is_told_once_and_changes_nothing() {
        let network = Network::parse("a.json", &clos(2, 2, 1).to_string()).unwrap();
        let folder = std::env::temp_dir().join(format!("hocket-links-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("links.toml");
        let links = |text: &str| {
            let links = network.links_named(text).unwrap();
            links.iter().map(|link| link.0).collect::<BTreeSet<_>>()
        };
        let list = |links: BTreeSet<u32>| links.into_iter().collect::<Vec<_>>();
        // What the controller knew from before, and the file does not name.
        let mut file = LinkFile::new(path.clone(), Arc::new(network.clone()), links("sw1,sw3"));
        fs::write(&path, "failed = ['sw0,sw2']").unwrap();
        let seen = file.look();
        assert_eq!(
            seen,
            Seen::Changed {
                fail: list(links("sw0,sw2")),
                back: list(links("sw1,sw3")),
            }
        );
        assert_eq!(file.look(), Seen::Same);
        for (text, why) in [
            ("", "failed: it is missing; "),
            ("failed = ['sw0", "line 1: "),
            ("failed = ['sw9']", "failed: no device is called \"sw9\"; "),
            ("failed = 'sw0'", "failed: it is not a list of texts; "),
            (
                "failed = []\nfialed = []",
                "unknown key \"fialed\": did you mean \"failed\"?",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let Seen::Broken(error) = file.look() else {
                panic!("{text}");
            };
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(file.look(), Seen::Same, "{text}");
            fs::write(&path, "failed = ['sw0,sw2']").unwrap();
            let nothing = Seen::Changed {
                fail: vec![],
                back: vec![],
            };
            assert_eq!(file.look(), nothing, "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.look(), Seen::Broken(_)));
        fs::write(&path, "failed = ['sw0']").unwrap();
        let rest = links("sw0")
            .difference(&links("sw0,sw2"))
            .copied()
            .collect();
        assert_eq!(
            file.look(),
            Seen::Changed {
                fail: rest,
                back: vec![],
            }
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
