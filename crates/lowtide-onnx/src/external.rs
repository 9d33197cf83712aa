//! Values in other files: a location beside the model in, a piece of that file out.
//!
//! ~~~text
//! models/m.onnx   w { location: "m.weights", offset: 4096, length: 12 }
//! models/m.weights   ........|wwwwwwwwwwww|....      one map for all the weights in it
//!                            4096
//! ~~~
//! A location comes from an untrusted file, so it stays in the model's folder: no root, no `..`, no link
//! that leads out. Links are followed first and judged by where they end, and a model that is a link
//! itself may have its weights beside either end, as caches lay them out.

use crate::error::LoadError;
use crate::map;
use crate::options::{External, ReadOptions};
use crate::proto::TensorProto;
use lowtide_core::Data;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Files beside a model, each mapped once.
pub(crate) struct Files<'o> {
    options: &'o ReadOptions,
    /// Where a location begins; `None` for a model from memory.
    folder: Option<PathBuf>,
    /// Where it may end, links followed; empty until the first file is looked for.
    inside: Vec<PathBuf>,
    open: BTreeMap<PathBuf, Data>,
    missing: BTreeSet<String>,
    /// The model's own file.
    model: Option<PathBuf>,
}

/// What a search for a value found.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    Value(Data),
    /// Nobody wants it, or its file was missed before.
    Absent,
    /// Its file is not there.
    Missing,
}

/// Where a tensor says that its value lies.
struct Place<'p> {
    tensor: String,
    location: &'p str,
    offset: u64,
    length: Option<u64>,
}

impl<'o> Files<'o> {
    /// Those beside the model of this path.
    pub(crate) fn beside(model: &Path, options: &'o ReadOptions) -> Self {
        let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty());
        let files = Self::of_folder(Some(folder.unwrap_or(Path::new("."))), options);
        Self { model: Some(model.to_owned()), ..files }
    }

    /// Those in this folder, or none.
    pub(crate) fn of_folder(folder: Option<&Path>, options: &'o ReadOptions) -> Self {
        let (folder, model) = (folder.map(Path::to_owned), None);
        let (open, missing) = (BTreeMap::new(), BTreeSet::new());
        Self { options, folder, inside: Vec::new(), open, missing, model }
    }

    /// The value of a tensor that fills `need` bytes.
    pub(crate) fn find(
        &mut self,
        tensor: &TensorProto,
        name: String,
        need: u64,
    ) -> Result<Found, LoadError> {
        let place = place(tensor, name)?;
        if let Some(found) = place.length.filter(|&length| length != need) {
            return Err(place.error(format!("{found} bytes"), format!("{need}, as its shape says")));
        }
        if self.folder.is_none() || self.options.external == External::Skip {
            return Ok(Found::Absent);
        }
        match self.file(&place) {
            Ok(file) => cut(&file, &place, need).map(Found::Value),
            Err(Refusal::Outside) => Err(place.outside()),
            Err(Refusal::Io(error)) if error.kind() == ErrorKind::NotFound => {
                let is_first = self.missing.insert(place.location.to_owned());
                Ok(if is_first { Found::Missing } else { Found::Absent })
            }
            Err(Refusal::Io(error)) => {
                Err(place.error(error.to_string(), "a file that can be read".to_owned()))
            }
        }
    }

    fn file(&mut self, place: &Place<'_>) -> Result<Data, Refusal> {
        let folder = self.folder.as_ref().expect("asked for before");
        let path = folder.join(place.location).canonicalize().map_err(Refusal::Io)?;
        if self.inside.is_empty() {
            self.inside = self.allowed().map_err(Refusal::Io)?;
        }
        if !self.inside.iter().any(|folder| path.starts_with(folder)) {
            return Err(Refusal::Outside);
        }
        if let Some(data) = self.open.get(&path) {
            return Ok(data.clone());
        }
        if !path.metadata().map_err(Refusal::Io)?.is_file() {
            return Err(Refusal::Io(io::Error::other("no ordinary file")));
        }
        let data = map::contents(&path, self.options.mmap, u64::MAX).map_err(Refusal::Io)?;
        self.open.insert(path, data.clone());
        Ok(data)
    }

    fn allowed(&self) -> io::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        if let Some(folder) = &self.folder {
            folders.push(folder.canonicalize()?);
        }
        if let Some(model) = &self.model {
            folders.extend(model.canonicalize()?.parent().map(Path::to_owned));
        }
        Ok(folders)
    }
}

enum Refusal {
    Outside,
    Io(io::Error),
}

impl Place<'_> {
    fn error(&self, found: String, wanted: String) -> LoadError {
        let (tensor, location) = (self.tensor.clone(), self.location.to_owned());
        LoadError::External { tensor, location, found, wanted }
    }

    fn outside(&self) -> LoadError {
        let wanted = "a path that stays in the model's folder";
        self.error("a path that leads elsewhere".to_owned(), wanted.to_owned())
    }
}

/// Reads and judges a place; no file is touched.
fn place(tensor: &TensorProto, name: String) -> Result<Place<'_>, LoadError> {
    let value = |key: &str| {
        let row = tensor.external_data.iter().find(|row| row.key == key);
        row.map(|row| row.value.as_str())
    };
    let location = value("location").unwrap_or_default();
    let mut place = Place { tensor: name, location, offset: 0, length: None };
    if location.is_empty() {
        return Err(place.error("no location".to_owned(), "the name of a file".to_owned()));
    }
    // A backslash parts folders on some systems only, so the meaning of such a path is open.
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(location).components().all(is_inside) || location.contains(['\\', '\0']) {
        return Err(place.outside());
    }
    place.offset = number(&place, "offset", value("offset"))?.unwrap_or(0);
    place.length = number(&place, "length", value("length"))?;
    Ok(place)
}

fn number(place: &Place<'_>, key: &str, text: Option<&str>) -> Result<Option<u64>, LoadError> {
    let Some(text) = text else { return Ok(None) };
    let value = text.trim().parse().map(Some);
    value.map_err(|_| place.error(format!("{key} {text:?}"), "a number from 0".to_owned()))
}

fn cut(file: &Data, place: &Place<'_>, need: u64) -> Result<Data, LoadError> {
    let has = file.len() as u64;
    let end = place.offset.checked_add(need).filter(|&end| end <= has);
    let range = |end| Some(usize::try_from(place.offset).ok()?..usize::try_from(end).ok()?);
    let Some(range) = end.and_then(range) else {
        let wanted = format!("{need} from byte {} on", place.offset);
        return Err(place.error(format!("a file of {has} bytes"), wanted));
    };
    Ok(file.slice(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::StringStringEntryProto;
    use std::fs;
    use tempfile::TempDir;

    /// A folder with `w.bin`, which holds the bytes from 0 to 99, and `deep/v.bin`.
    fn folder() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("w.bin"), (0..100).collect::<Vec<u8>>()).unwrap();
        fs::write(folder.path().join("deep/v.bin"), [7; 4]).unwrap();
        folder
    }

    fn tensor(rows: &[(&str, &str)]) -> TensorProto {
        let row = |&(key, value): &(&str, &str)| StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        TensorProto { external_data: rows.iter().map(row).collect(), ..TensorProto::default() }
    }

    fn find(folder: &Path, rows: &[(&str, &str)], need: u64) -> Result<Found, String> {
        let options = ReadOptions::default();
        let mut files = Files::of_folder(Some(folder), &options);
        files.find(&tensor(rows), "w".to_owned(), need).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn finds(rows: &[(&str, &str)], wanted: &[u8]) {
        let found = find(folder().path(), rows, wanted.len() as u64).unwrap();
        assert_eq!(found, Found::Value(Data::copy_from_slice(wanted)));
    }

    #[track_caller]
    fn refuses(rows: &[(&str, &str)], message: &str) {
        let error = find(folder().path(), rows, 4).unwrap_err();
        let location = rows.first().map_or("", |row| row.1);
        assert_eq!(error, format!("tensor `w` lies in `{location}`: {message}"));
    }

    #[test]
    fn a_value_is_a_piece_of_its_file() {
        finds(&[("location", "w.bin")], &[0, 1]);
        finds(&[("location", "w.bin"), ("offset", "98"), ("checksum", "?")], &[98, 99]);
        finds(&[("location", "./deep/v.bin"), ("length", "4")], &[7; 4]);
        finds(&[("location", "w.bin"), ("offset", "100")], &[]);
    }

    #[test]
    fn offset_and_length_are_held_against_file_and_shape() {
        let at = |offset, length| [("location", "w.bin"), ("offset", offset), ("length", length)];
        refuses(&at("0", "3"), "found 3 bytes, wanted 4, as its shape says");
        refuses(&at("97", "4"), "found a file of 100 bytes, wanted 4 from byte 97 on");
        let most = u64::MAX.to_string();
        let message = format!("found a file of 100 bytes, wanted 4 from byte {most} on");
        refuses(&at(&most, "4"), &message);
        refuses(&at("-1", "4"), "found offset \"-1\", wanted a number from 0");
        refuses(&at("0", "four"), "found length \"four\", wanted a number from 0");
        refuses(&[], "found no location, wanted the name of a file");
    }

    #[test]
    fn a_path_stays_in_the_folder() {
        let message =
            "found a path that leads elsewhere, wanted a path that stays in the model's folder";
        for location in ["/etc/hostname", "../w.bin", "deep/../../w.bin", "..\\w.bin", "w\0"] {
            refuses(&[("location", location)], message);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_may_not_lead_out() {
        let (inner, outer) = (folder(), folder());
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, inner.path().join(name)).unwrap();
        };
        link(&outer.path().join("w.bin"), "file");
        link(outer.path(), "folder");
        link(Path::new("deep/v.bin"), "inside");
        for location in ["file", "folder/w.bin"] {
            let error = find(inner.path(), &[("location", location)], 4).unwrap_err();
            assert!(error.contains("leads elsewhere"), "{error}");
        }
        let found = find(inner.path(), &[("location", "inside")], 4).unwrap();
        assert_eq!(found, Found::Value(Data::from_static(&[7; 4])));
    }

    #[cfg(unix)]
    #[test]
    fn a_model_that_is_a_link_may_have_its_weights_at_either_end() {
        let (store, shown) = (folder(), tempfile::tempdir().unwrap());
        fs::write(store.path().join("m"), "").unwrap();
        for (to, name) in [("m", "m.onnx"), ("w.bin", "m.weights")] {
            let (to, name) = (store.path().join(to), shown.path().join(name));
            std::os::unix::fs::symlink(to, name).unwrap();
        }
        let options = ReadOptions::default();
        let mut files = Files::beside(&shown.path().join("m.onnx"), &options);
        let found = files.find(&tensor(&[("location", "m.weights")]), "w".to_owned(), 2).unwrap();
        assert_eq!(found, Found::Value(Data::from_static(&[0, 1])));
    }

    #[test]
    fn a_file_that_is_not_there_is_missed_once() {
        let (folder, options) = (folder(), ReadOptions::default());
        let mut files = Files::of_folder(Some(folder.path()), &options);
        let mut find = || files.find(&tensor(&[("location", "no.bin")]), String::new(), 4).unwrap();
        assert_eq!((find(), find()), (Found::Missing, Found::Absent));
    }

    #[test]
    fn a_folder_is_no_file() {
        refuses(&[("location", "deep")], "found no ordinary file, wanted a file that can be read");
    }

    #[test]
    fn values_that_nobody_wants_are_not_looked_for() {
        let (folder, rows) = (folder(), [("location", "no.bin")]);
        let options = ReadOptions { external: External::Skip, ..ReadOptions::default() };
        let mut skipping = Files::of_folder(Some(folder.path()), &options);
        assert_eq!(skipping.find(&tensor(&rows), String::new(), 4).unwrap(), Found::Absent);
        let mut nowhere = Files::of_folder(None, &options);
        assert_eq!(nowhere.find(&tensor(&rows), String::new(), 4).unwrap(), Found::Absent);
        assert!(nowhere.find(&tensor(&[("location", "/x")]), String::new(), 4).is_err());
    }

    #[test]
    fn a_file_is_mapped_once() {
        let (folder, options) = (folder(), ReadOptions::default());
        let mut files = Files::of_folder(Some(folder.path()), &options);
        let mut address = |rows| match files.find(&tensor(rows), String::new(), 4).unwrap() {
            Found::Value(data) => data.as_ptr().addr(),
            other => panic!("{other:?}"),
        };
        let first = address(&[("location", "w.bin")]);
        assert_eq!(address(&[("location", "./w.bin"), ("offset", "8")]), first + 8);
    }
}
