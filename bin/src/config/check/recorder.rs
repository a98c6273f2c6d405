//! Whether what is recorded can be kept.

use std::io;
use std::path::Path;

use super::super::reader::Reader;

const FILE: &str = "recorder.file";

/// A file without anything to go into it is a mistake.
pub(super) fn settings(reader: &mut Reader<'_>) {
    let recorder = &reader.settings.recorder;
    if recorder.size.is_none() && !recorder.file.as_os_str().is_empty() {
        let wrong =
            String::from("names a file for what is recorded, and `recorder.size` says \"off\": nothing is recorded");
        let right = String::from("leave `file` out, or give `size` a size such as \"64 MiB\"");
        reader.conflict(&[FILE, "recorder.size"], wrong, right);
    }
}

/// Whether there can be such a file. It is opened when the program starts, not here: another one may be recording into it.
pub(super) fn files(reader: &mut Reader<'_>) {
    let path = reader.settings.recorder.file.clone();
    if !path.as_os_str().is_empty()
        && let Err(error) = possible(&path)
    {
        let right =
            String::from("name a file in a directory that is there, such as \"/var/lib/holdfast/edge.journal\"");
        reader.conflict(&[FILE], format!("cannot be recorded into: {error}"), right);
    }
}

fn possible(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(found) if found.is_dir() => return Err(io::Error::other("it is a directory")),
        Ok(_) => return Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match directory.metadata() {
        Ok(found) if found.is_dir() && path.file_name().is_some() => Ok(()),
        Ok(_) => Err(io::Error::other(format!("{} is not a directory", directory.display()))),
        Err(error) => Err(io::Error::other(format!("{}: {error}", directory.display()))),
    }
}
