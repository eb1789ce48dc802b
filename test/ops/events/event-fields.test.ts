// docs/events-and-conditions.md lists the fields of every event. `npm run docs` writes it from the table of the
// events; here the page is compared with what the log writes.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { lineOf } from '../../../src/ops/logging/log-line.ts'
import { eventSamples } from '../../support/event-samples.ts'

const page = readFileSync(resolve(import.meta.dirname, '../../../docs/events-and-conditions.md'), 'utf8')

/** The rows of a generated table, by their first cell. */
function rowsOf(table: string): Map<string, string[]> {
  const text = page.split(`<!-- generated: ${table} -->`)[1]?.split('<!-- end -->')[0] ?? ''
  const rows = [...text.matchAll(/^\| `(\w+)` \|(.*)\|$/gm)]
  return new Map(
    rows.map(([, name = '', cells = '']) => [name, cells.split(' | ').map((cell) => cell.trim())]),
  )
}

const namesIn = (cell: string) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
const events = rowsOf('events')
const fields = rowsOf('fields')
const documentedOf = (event: string) => namesIn(events.get(event)?.at(-1) ?? '')

describe('the documentation of the events', () => {
  test.each(Object.values(eventSamples))('has the fields of $kind as the log writes them', (event) => {
    const documented = documentedOf(event.kind)
    const logged = Object.keys(lineOf(event).fields)
    expect(logged.filter((name) => !documented.includes(name))).toEqual([])
    // What an answer has depends on the answer.
    const always = event.kind === 'submission_ended' ? logged : documented
    expect(always.filter((name) => !logged.includes(name))).toEqual([])
  })

  test('has a meaning for each of them, and for no other', () => {
    const used = new Set([...events.keys()].flatMap(documentedOf))
    expect([...fields.keys()].toSorted()).toEqual([...used].toSorted())
    for (const [meaning = ''] of fields.values()) expect(meaning).toMatch(/\w/)
  })
})
