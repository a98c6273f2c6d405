//! Whether libraries can be told apart, and looked through.

use std::collections::BTreeMap;

use super::super::reader::Reader;

/// Checks that need nothing but the settings.
pub(super) fn settings(reader: &mut Reader<'_>) {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (n, library) in reader.settings.libraries.clone().into_iter().enumerate() {
        let [element, name, path] = ["", ".name", ".path"].map(|key| format!("library[{n}]{key}"));
        if library.name.is_empty() {
            let right = String::from("write `name`, such as name = \"films\"");
            reader.conflict(&[&element, &name], String::from("has no name"), right);
        } else if let Some(first) = places.get(&library.name) {
            let wrong = format!("\"{}\" is the name of `library[{first}]` already", library.name);
            reader.conflict(&[&name, &element], wrong, String::from("give each library a `name` of its own"));
        } else {
            places.insert(library.name, n);
        }
        if library.path.as_os_str().is_empty() {
            let right = String::from("write `path`, such as path = \"/srv/films\"");
            reader.conflict(&[&element, &path], String::from("has no directory"), right);
        }
    }
}
