// unread-reason.ts: says what the messages are that no proposal reads, so that a person knows what to do.

import { isUtf8 } from 'node:buffer'
import { quote } from '../std/quote.ts'
import { positionIn, sentence } from './source-draft.ts'
import { jsonIn, type TopicShape } from './topic-shapes.ts'

const keysShown = 8

export function unreadReason(shape: TopicShape): string {
  const { last } = shape
  if (last === null) return 'Their messages are too large to be tried.'
  const { bytes } = last
  if (bytes.length === 0) return 'Their messages are empty.'
  if (!isUtf8(bytes)) return `Their messages are binary, ${bytes.length} bytes. No binary preset reads them.`
  const text = bytes.toString()
  const nmea = sentence.exec(text)?.[0]
  const value = jsonIn(bytes)
  if (nmea !== undefined)
    return (
      `They contain NMEA 0183 sentences (${nmea}), but no message has a RMC with a date, a valid position and ` +
      'a checksum, which the preset nmea needs. Try it with `map --preset nmea --explain`.'
    )
  if (value === undefined) return `Their messages are text that is not JSON: ${quote(text, 60)}.`
  if (typeof value !== 'object' || value === null)
    return 'Their messages are single values. A source with `coalesce` collects the values of a device.'
  if ('_type' in value && value._type === 'encrypted')
    return 'They are encrypted messages of OwnTracks. The preset owntracks reads them with `keys` of its source.'
  const [first] = Array.isArray(value) ? (value as unknown[]) : []
  if (typeof first === 'object' && first !== null && ('bn' in first || ('n' in first && 'v' in first)))
    return (
      'They are lists of SenML. A source with `coalesce: { name: { path: n }, value: v }` makes one payload of the ' +
      'values of a list, which it reads by their names.'
    )
  const position = positionIn(shape)
  if (position === null) return `No key looks like a position. Keys: ${keysOf(value)}.`
  const { form, paths } = position
  if (form.kind === 'unusable') return `${form.note} Keys: ${paths}.`
  return `They have a position (${paths}), but no message became a payload. Try it with \`map --explain\`.`
}

function keysOf(value: object): string {
  const [first] = Array.isArray(value) ? (value as unknown[]) : [value]
  const keys = typeof first === 'object' && first !== null ? Object.keys(first) : []
  const more = keys.length > keysShown ? ` and ${keys.length - keysShown} more` : ''
  return keys.length === 0
    ? 'none'
    : keys
        .slice(0, keysShown)
        .map((key) => quote(key, 40))
        .join(', ') + more
}
