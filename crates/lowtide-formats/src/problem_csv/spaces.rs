//! A table and spaces by name: rows to a [`SpacesProblem`], and back with the space and the offset in it.
//!
//! ~~~text
//! id,lower,upper,size,space,weight      spaces: sram of 256 KiB, dram
//! a,0,9,4096,sram,                      a has to lie in sram; it is worth its size
//! b,3,5,8192,,70000        ──────────>  b lies anywhere, and is worth 70000 in sram
//! ~~~
//! A file does not say which spaces there are: the same table is placed on several machines.

use super::table::{Table, line, with_cells};
use super::{NamedProblem, ProblemCsvError};
use csv::Writer;
use lowtide_core::{
    BufferId, Bytes, Id, IndexVec, SpaceId, SpacesError, SpacesPlacement, SpacesProblem, Stay,
};
use std::io::{self, Write};

/// A space as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpace {
    /// Its name; each once.
    pub name: String,
    /// How many bytes it has; no limit if absent.
    pub capacity: Option<Bytes>,
}

impl NamedProblem {
    /// The space in which an item has to lie by its row.
    pub fn space(&self, item: BufferId) -> Option<&str> {
        let place = self.table.columns.space?;
        // What was reserved has no row.
        let cell = &self.table.rows.get(item.index())?[place];
        (!cell.is_empty()).then_some(cell)
    }

    /// An error at the first row that names a space: such a table wants to know which spaces there are.
    pub fn names_no_space(&self) -> Result<(), ProblemCsvError> {
        let named = self.ids.ids().find_map(|id| Some((id, self.space(id)?)));
        named.map_or(Ok(()), |(id, name)| {
            let wanted = "no space, as none are given".to_owned();
            Err(self.wrong(id, self.table.columns.space, name, wanted))
        })
    }

    /// The problem with these spaces, the fastest first. Offsets of the file bind, beside the space they are in.
    pub fn in_spaces(
        &self,
        spaces: &IndexVec<SpaceId, NamedSpace>,
    ) -> Result<SpacesProblem, ProblemCsvError> {
        let mut stays = IndexVec::new();
        for (id, &weight) in self.weights.iter_enumerated() {
            stays.push(Stay { weight, space: self.space_of(id, spaces)? });
        }
        let capacities = spaces.iter().map(|space| space.capacity).collect();
        let problem = SpacesProblem::new(self.with_pins()?, capacities, stays);
        problem.map_err(|error| match error {
            SpacesError::PinWithoutSpace { item } => {
                let offset = self.offsets[item].unwrap_or_default().0.to_string();
                let wanted = "nothing beside an empty `space`".to_owned();
                self.wrong(item, self.table.columns.offset, &offset, wanted)
            }
            SpacesError::TooHeavy { item, limit } => {
                ProblemCsvError::TooHeavy { id: self.ids[item].clone(), limit }
            }
            error => error.into(),
        })
    }

    /// The columns `space` and `offset` as a placement, to be judged; every item must have both.
    pub fn placement_in_spaces(
        &self,
        spaces: &IndexVec<SpaceId, NamedSpace>,
    ) -> Result<SpacesPlacement, ProblemCsvError> {
        let sizes = IndexVec::filled(spaces.len(), Bytes::ZERO);
        let mut placement = SpacesPlacement { sizes, ..SpacesPlacement::default() };
        for id in self.ids.ids() {
            let no_space = || ProblemCsvError::NoSpace { id: self.ids[id].clone() };
            let space = self.space_of(id, spaces)?.ok_or_else(no_space)?;
            let (offset, end) = self.place(id)?;
            placement.spaces.push(space);
            placement.offsets.push(offset);
            placement.sizes[space] = placement.sizes[space].max(end);
        }
        Ok(placement)
    }

    fn space_of(
        &self,
        id: BufferId,
        spaces: &IndexVec<SpaceId, NamedSpace>,
    ) -> Result<Option<SpaceId>, ProblemCsvError> {
        let Some(name) = self.space(id) else { return Ok(None) };
        let found = spaces.iter_enumerated().find(|(_, space)| space.name == name);
        let unknown = || {
            let names: Vec<&str> = spaces.iter().map(|space| space.name.as_str()).collect();
            let wanted = format!("nothing, or one of {}", names.join(", "));
            self.wrong(id, self.table.columns.space, name, wanted)
        };
        found.map(|(space, _)| Some(space)).ok_or_else(unknown)
    }

    fn wrong(
        &self,
        id: BufferId,
        column: Option<usize>,
        found: &str,
        wanted: String,
    ) -> ProblemCsvError {
        let column = column.and_then(|place| self.table.header.get(place)).unwrap_or_default();
        let line = self.table.rows.get(id.index()).map_or(1, line);
        let (column, found) = (column.to_owned(), found.to_owned());
        ProblemCsvError::Cell { line, column, found, wanted }
    }
}

/// Writes the table of a problem with spaces and offsets; all other columns stay as they were.
///
/// # Panics
/// If the placement has fewer items than the problem, or names a space that is not there.
pub fn write_spaces_placement(
    problem: &NamedProblem,
    spaces: &IndexVec<SpaceId, NamedSpace>,
    placement: &SpacesPlacement,
    out: impl Write,
) -> io::Result<()> {
    let Table { header, rows, columns } = &problem.table;
    let mut writer = Writer::from_writer(out);
    let space = columns.space.unwrap_or(header.len());
    let next = header.len() + usize::from(columns.space.is_none());
    let offset = columns.offset.unwrap_or(next);
    writer.write_record(with_cells(header, [(space, "space"), (offset, "offset")]))?;
    for (id, row) in placement.offsets.ids().zip(rows) {
        let name = &spaces[placement.spaces[id]].name;
        let bytes = placement.offsets[id].0.to_string();
        writer.write_record(with_cells(row, [(space, name), (offset, &bytes)]))?;
    }
    assert!(placement.offsets.len() >= rows.len(), "a placement has an offset for each item");
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_problem;

    fn read(text: &str) -> NamedProblem {
        read_problem(text.as_bytes()).unwrap()
    }

    fn spaces() -> IndexVec<SpaceId, NamedSpace> {
        let space = |name: &str, capacity| NamedSpace { name: name.into(), capacity };
        vec![space("sram", Some(Bytes(8))), space("dram", None)].into()
    }

    #[track_caller]
    fn check_error(text: &str, wanted: &str) {
        let error = read_problem(text.as_bytes()).and_then(|named| named.in_spaces(&spaces()));
        assert_eq!(error.unwrap_err().to_string(), wanted);
    }

    #[test]
    fn rows_say_where_items_lie_and_what_they_are_worth() {
        let named = read("id,weight,lower,upper,size,space\na,,0,2,4,dram\nb,70,0,2,5,\n");
        let problem = named.in_spaces(&spaces()).unwrap();
        let dram = Some(SpaceId::new(1));
        let wanted = [Stay { weight: 4, space: dram }, Stay { weight: 70, space: None }];
        assert_eq!(problem.stays().as_slice(), wanted);
        let message = "line 2, column `space`: found `dram`, wanted no space, as none are given";
        assert_eq!(named.pinned().unwrap_err().to_string(), message);
        assert_eq!(named.placement().unwrap_err().to_string(), message);
    }

    #[test]
    fn wrong_cells_are_named() {
        let header = "id,lower,upper,size,space,weight,offset\n";
        let check = |row: &str, wanted: &str| check_error(&format!("{header}{row}\n"), wanted);
        check(
            "a,0,1,4,rom,,",
            "line 2, column `space`: found `rom`, wanted nothing, or one of sram, dram",
        );
        for weight in ["-1", "1.5", "9223372036854775808", "much"] {
            let wanted = "a whole number of 0 to 9223372036854775807";
            let wanted = format!("line 2, column `weight`: found `{weight}`, wanted {wanted}");
            check(&format!("a,0,1,4,,{weight},"), &wanted);
        }
        check(
            "a,0,1,4,,,16",
            "line 2, column `offset`: found `16`, wanted nothing beside an empty `space`",
        );
        let heavy = "a,0,1,4,,9223372036854775807,\nb,0,1,4,,1,";
        check(heavy, "with item `b` the weights add up to more than 9223372036854775807");
        let two = read("id,lower,upper,size,offset,space\na,0,1,4,0,sram\nb,0,1,4,0,\n");
        let error = two.placement_in_spaces(&spaces()).unwrap_err();
        assert_eq!(error.to_string(), "item `b` has no space");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let placement = SpacesPlacement {
            spaces: [1, 0].map(SpaceId::new).to_vec().into(),
            offsets: [0, 3].map(Bytes).to_vec().into(),
            sizes: [8, 4].map(Bytes).to_vec().into(),
            spills: Vec::new(),
        };
        let written = |text: &str| {
            let mut out = Vec::new();
            write_spaces_placement(&read(text), &spaces(), &placement, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = written("id,lower,upper,size\na,0,2,4\nb,0,2,5\n");
        assert_eq!(text, "id,lower,upper,size,space,offset\na,0,2,4,dram,0\nb,0,2,5,sram,3\n");
        assert_eq!(read(&text).placement_in_spaces(&spaces()).unwrap(), placement);
        assert_eq!(
            written("offset,id,lower,upper,size\n,a,0,2,4\n,b,0,2,5\n"),
            "offset,id,lower,upper,size,space\n0,a,0,2,4,dram\n3,b,0,2,5,sram\n"
        );
        let given = "space,id,lower,upper,size\ndram,a,0,2,4\n,b,0,2,5\n";
        assert!(written(given).starts_with("space,id,lower,upper,size,offset\ndram,a,0,2,4,0\n"));
    }
}
