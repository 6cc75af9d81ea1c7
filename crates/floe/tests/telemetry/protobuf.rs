//! The part of protobuf needed to read exported messages, implemented from its specification: a message is a list of
//! numbered fields, each a varint, bytes of fixed length, or length-delimited text, bytes or message.

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'b> {
    Number(u64),
    Piece(&'b [u8]),
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message<'b>(Vec<(u64, Value<'b>)>);

impl<'b> Message<'b> {
    pub(crate) fn parse(mut bytes: &'b [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => Value::Number(u64::from_le_bytes(cut(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    Value::Piece(cut(&mut bytes, length))
                }
                5 => {
                    let four = cut(&mut bytes, 4).try_into().unwrap();
                    Value::Number(u64::from(u32::from_le_bytes(four)))
                }
                wire => panic!("unknown wire type: {wire}"),
            };
            fields.push((tag >> 3, value));
        }
        Self(fields)
    }

    pub(crate) fn pieces(&self, number: u64) -> impl Iterator<Item = &'b [u8]> {
        let fields = self.0.iter().filter(move |(field, _)| *field == number);
        fields.filter_map(|(_, value)| match value {
            Value::Piece(piece) => Some(*piece),
            Value::Number(_) => None,
        })
    }

    /// Returns the messages in this field.
    pub(crate) fn all(&self, number: u64) -> Vec<Message<'b>> {
        self.pieces(number).map(Message::parse).collect()
    }

    pub(crate) fn text(&self, number: u64) -> &'b str {
        let piece = self.pieces(number).next().unwrap_or_default();
        std::str::from_utf8(piece).unwrap()
    }

    pub(crate) fn number(&self, number: u64) -> Option<u64> {
        self.0.iter().find_map(|(field, value)| match value {
            Value::Number(found) if *field == number => Some(*found),
            _ => None,
        })
    }

    /// Returns an attribute in this field, as text: `KeyValue { key = 1, value = 2 }`, `AnyValue { string = 1, bool =
    /// 2, int = 3, .. }`.
    pub(crate) fn attribute(&self, number: u64, name: &str) -> Option<String> {
        let attribute = self
            .all(number)
            .into_iter()
            .find(|pair| pair.text(1) == name)?;
        let value = attribute.all(2).remove(0);
        Some(match value.0.first()? {
            (1, Value::Piece(text)) => String::from_utf8(text.to_vec()).unwrap(),
            (2, Value::Number(is)) => (*is == 1).to_string(),
            (3, Value::Number(int)) => int.to_string(),
            (4, Value::Number(bits)) => f64::from_bits(*bits).to_string(),
            other => panic!("{other:?}"),
        })
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = cut(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
    }
    number
}

fn cut<'b>(bytes: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (first, rest) = bytes.split_at(length);
    *bytes = rest;
    first
}
