//! Certificates that are replaced while the controller runs.

use std::fs;
use std::time::Duration;

use hocket_controller::rotation::watch;

use super::support::{Bench, host, make_certs, until};

#[tokio::test]
async fn other_certificates_take_effect_without_a_restart() {
    let bench = Bench::new();
    let service = bench.start(1, None).await;
    let metrics = service.server_owner.metrics().clone();
    let files = bench.config.tls.clone();
    let every = Duration::from_millis(5);
    let watching = tokio::spawn(watch(files, every, service.shown.clone(), metrics.clone()));
    let before = bench.agent(0, service.address);
    assert!(before.open(before.ends(2, 5_000)).await.1.is_ok());

    // A key that does not fit: the old certificates are shown on.
    let folder = &bench.folder.0;
    let key = fs::read(folder.join("controller.key")).unwrap();
    fs::copy(folder.join("h0.key"), folder.join("controller.key")).unwrap();
    until("the wrong key is noticed", || {
        metrics.certificate_errors.get() > 0
    })
    .await;
    let meanwhile = bench.agent(1, service.address);
    assert!(meanwhile.open(meanwhile.ends(2, 5_000)).await.1.is_ok());
    fs::write(folder.join("controller.key"), key).unwrap();

    // Another authority altogether: those of the old one can no longer connect, sessions that are there go on.
    for name in ["ca.pem", "ca.key"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let loaded = metrics.certificates_loaded.get();
    make_certs(folder, &[host(0), host(1), host(2)], true);
    until("they are shown", || {
        metrics.certificates_loaded.get() > loaded
    })
    .await;
    let after = bench.agent(2, service.address);
    assert!(after.open(after.ends(0, 5_000)).await.1.is_ok());
    assert!(before.open(before.ends(3, 5_000)).await.1.is_ok());
    assert_eq!(before.agent_owner.metrics().welcomes, 1);
    watching.abort();
    service.end().await;
}
