// explain-text.ts: the text of `map --explain`.
//
//   telemetry/v1/truck-7, source trucks: 1 payload
//     device truck-7: {device} of the topic; not in the device table
//     field      path  raw            unit  sent as                    note
//     time       ts    1769611120000  ms    2026-01-28T14:38:40.000Z
//     latitude   lat   47.1           deg   47.1 deg
//     heading    cog   400            deg   -                          outside 0 to 360

import { bounded, visible } from '../../std/quote.ts'
import type { Explained, ExplainedField } from '../../mapping/mapping.ts'
import { columns } from '../../std/text-table/text-table.ts'

type Record = Explained['records'][number]
type Declined = Explained['declined'][number]

/** Failed parts of a condition that are shown. */
const partsMax = 12

/** `result` is the result of the message, in words. */
export function explainedText(explained: Explained, result: string, width: number): string {
  const { topic, values, declined, records, body, unread } = explained
  const lines = [`${visible(topic ?? 'collected messages')}: ${visible(oneLine(result))}`]
  for (const source of declined) lines.push(...declinedLines(source).map((line) => `  ${line}`))
  for (const { name, wanted, value } of values)
    lines.push(`  value ${visible(name)}: ${wanted ? shown(value) : 'not collected'}`)
  for (const [index, record] of records.entries()) {
    if (records.length > 1) lines.push(`  record ${index + 1} of ${records.length}`)
    lines.push(...recordLines(record, width - 2).map((line) => `  ${line}`))
  }
  if (body !== null) lines.push(`  the body is doubtful: ${visible(body)} (\`charset\` of the source)`)
  if (unread !== null && (unread.keys.length > 0 || unread.partOf !== undefined))
    lines.push(`  not read: ${unreadLine(unread)}`)
  return `${lines.join('\n')}\n`
}

function recordLines(record: Record, width: number): string[] {
  const { device, conditions, unpacked, previous, fields, payloadId } = record
  const { name, from, listed, family, model, hasFamilies } = device
  const lines = [
    `device ${name === null ? 'unknown' : visible(name)}: ${visible(from)}; ${listed ? '' : 'not '}in the device table` +
      (family === null ? '' : `; family ${visible(family)}`),
  ]
  if (hasFamilies)
    lines.push(
      `model ${model === null ? 'unknown' : visible(model)}${family === null ? ': in no family' : ''}`,
    )
  for (const condition of conditions) lines.push(...conditionLines(condition))
  for (const { into, found, ignored } of unpacked)
    lines.push(
      `extract into ${visible(into)}: ${found ? 'found' : 'not found'}`,
      ...ignored.map((other) => `  ignored: ${visible(other)}`),
    )
  for (const { path, value, time } of previous)
    lines.push(`${visible(path)}: ${shown(value)}, of ${new Date(time).toISOString()}`)
  const sent = payloadId === null ? 'would be sent as' : 'sent as'
  lines.push(...columns([['field', 'path', 'raw', 'unit', sent, 'note'], ...fields.map(rowOf)], width))
  return lines
}

/** A source that was asked first and did not take the message. */
function declinedLines({ source, unread, records, text, parts }: Declined): string[] {
  const subject = `not taken by ${visible(source)}`
  if (unread !== null) return [`${subject}: ${visible(unread)}`]
  if (records === 0) return [`${subject}: it finds no records`]
  const of = records === 1 ? '' : `, which holds for none of ${records} records; in the first one`
  const [first = '', ...more] = conditionLines({ option: 'when', text, holds: false, parts })
  return [`${subject}${of}: ${first}`, ...more]
}

/** A condition of several parts is shown as the parts that do not hold. */
function conditionLines({ option, text, holds, parts }: Record['conditions'][number]): string[] {
  const whole = oneLine(text)
  if (parts === null || parts.parts < 2)
    return [`${option} ${visible(bounded(whole, 160))}: ${holds ? 'true' : 'false'}`]
  const { joined, failed } = parts
  const head =
    joined === 'and'
      ? `${failed.length} of its ${parts.parts} parts do not hold`
      : `none of its ${parts.parts} alternatives holds`
  const lines = failed.slice(0, partsMax).map(({ text: part, values }) => {
    const found = values.map(
      ({ path, value }) => `${path} is ${value === undefined ? 'absent' : shown(value)}`,
    )
    return `  ${visible(bounded(part, 160))}${found.length === 0 ? '' : ` (${visible(found.join(', '))})`}`
  })
  const more = failed.length - lines.length
  return [`${option}: false, ${head}:`, ...lines, ...(more > 0 ? [`  and ${more} more`] : [])]
}

function unreadLine({ keys, more, near, partOf }: NonNullable<Explained['unread']>): string {
  const others = more === 0 ? '' : ` and ${more} more`
  const names = keys.length === 0 ? 'nothing' : keys.map(visible).join(', ')
  const where = partOf === undefined ? '' : ` (only ${partOf} were looked at)`
  return `${names}${others}${where}${near.length === 0 ? '' : `; near: ${near.join(', ')}`}`
}

/** Reasons contain conditions, which may have several lines. */
function oneLine(text: string): string {
  return bounded(text.replace(/\s+/g, ' ').trim(), 400)
}

function rowOf(field: ExplainedField): string[] {
  const { field: name, path, paths, raw, unit, note } = field
  const from = path ?? (paths.length > 0 ? paths.join(' | ') : '-')
  return [name, bounded(from, 60), shown(raw), unit ?? '', valueOf(field), note ?? '']
}

function valueOf({ option, value, sentUnit }: ExplainedField): string {
  if (value === undefined) return '-'
  if (option === 'time' && typeof value === 'number') return new Date(value).toISOString()
  return `${typeof value === 'string' ? value : shown(value)}${sentUnit === null ? '' : ` ${sentUnit}`}`
}

function shown(value: unknown): string {
  if (value === undefined) return '-'
  return bounded(JSON.stringify(value) ?? '-', 60)
}
