//! The file of a former version beside a store.

use std::path::PathBuf;

use super::*;

/// Writes a file as the former version kept it.
fn write_former(path: &Path, names: impl IntoIterator<Item = String>) {
    let table: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("check-ins");
    let old = redb::Database::create(path).unwrap();
    let write = old.begin_write().unwrap();
    for name in names {
        let bytes = serde_json::to_vec(&check_in(&name, 7)).unwrap();
        write.open_table(table).unwrap().insert(name.as_str(), bytes.as_slice()).unwrap();
    }
    write.commit().unwrap();
}

/// Returns the settings of a store beside which a former file lies.
fn with_former(directory: &Path, limits: StoreLimits) -> (PathBuf, StoreSettings) {
    let former = directory.join("check-ins.redb");
    let location = StoreLocation::Sqlite(directory.join("nodes.sqlite"));
    let settings = StoreSettings {
        location,
        is_own_place: true,
        former: Some(former.clone()),
        cache: 1 << 20,
        limits,
    };
    (former, settings)
}

#[test]
fn the_file_of_a_former_version_is_imported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (former, settings) = with_former(directory.path(), LIMITS);
    write_former(&former, (0..600).map(|it| format!("n{it:03}")));
    let sound = std::fs::read(&former).unwrap();
    let store = CheckIns::new(settings.clone(), Arc::default());
    store.note(&check_in("n000", 8));
    let removals = store.0.file.removals();
    store.0.writer.take_turn().unwrap();
    assert!(!former.exists());
    let all = all(&store);
    assert_eq!((all.len(), &all[0], &all[1]), (600, &check_in("n000", 8), &check_in("n001", 7)));
    // Answers that were made before it are made again.
    assert!(store.0.file.removals() > removals);
    assert!(store.get("n999").unwrap().whole().is_ok());
    // One that is damaged is put aside, and its nodes do not count as unknown.
    std::fs::write(&former, &sound[..sound.len() / 2]).unwrap();
    store.0.writer.take_turn().unwrap();
    assert!(!former.exists());
    assert_eq!(store.get("n001").unwrap().check_in, Some(check_in("n001", 7)));
    assert_eq!(store.get("n999").unwrap().whole().unwrap_err().fault, StoreFault::PutAside);
    drop(store);
    let store = CheckIns::new(settings, Arc::default());
    store.0.writer.take_turn().unwrap();
    assert_eq!(store.get("n999").unwrap().whole().unwrap_err().fault, StoreFault::PutAside);
}

#[test]
fn what_a_former_version_may_know_is_not_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let (former, settings) = with_former(directory.path(), LIMITS);
    write_former(&former, ["a".to_owned()]);
    let store = CheckIns::new(settings.clone(), Arc::default());
    let fault = |store: &CheckIns| store.get("a").unwrap().whole().map_err(|it| it.fault);
    store.0.file.ready().unwrap();
    assert_eq!(fault(&store).unwrap_err(), StoreFault::NotImported);
    // A daemon that stops meanwhile leaves it to the next one.
    store.stop();
    store.0.writer.take_turn().unwrap();
    assert!(former.exists());
    assert_eq!(fault(&store).unwrap_err(), StoreFault::NotImported);
    drop(store);
    let store = CheckIns::new(settings.clone(), Arc::default());
    // Who took it away wants it gone.
    let away = directory.path().join("away");
    std::fs::rename(&former, &away).unwrap();
    store.0.writer.take_turn().unwrap();
    assert!(fault(&store).is_ok());
    drop(store);
    std::fs::rename(&away, &former).unwrap();
    let store = CheckIns::new(settings, Arc::default());
    store.0.writer.take_turn().unwrap();
    assert_eq!(store.get("a").unwrap().check_in, Some(check_in("a", 7)));
}

#[test]
fn nodes_of_a_former_version_that_are_not_imported_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (former, settings) = with_former(directory.path(), StoreLimits { nodes: 3, ..LIMITS });
    write_former(&former, (0..9).map(|it| format!("n{it}")).chain(["n\0".to_owned()]));
    let store = CheckIns::new(settings, Arc::default());
    store.0.writer.take_turn().unwrap();
    assert_eq!(all(&store).len(), 3);
    assert!(!former.exists());
    assert!(directory.path().join("check-ins.redb.not-imported-1").exists());
    drop(store);
    // A name that cannot be has no part in that.
    let directory = tempfile::tempdir().unwrap();
    let (former, settings) = with_former(directory.path(), LIMITS);
    write_former(&former, ["a", "n\0"].map(str::to_owned));
    let store = CheckIns::new(settings, Arc::default());
    store.0.writer.take_turn().unwrap();
    assert_eq!(all(&store).len(), 1);
    assert_eq!(
        std::fs::read_dir(directory.path())
            .unwrap()
            .flatten()
            .filter(|it| it.file_name().to_string_lossy().contains("redb"))
            .count(),
        0
    );
}
