// field-notes.ts: what each field of a record read, for an explanation. The options of a source that is
// explained have notes when they are compiled (withNotes); what is compiled of them notes what it finds and
// writes. All other sources are compiled without notes, so their messages cost nothing for it.

import { hexHint } from '../encodings/text-bytes.ts'
import type { JudgeParts } from '../expression/condition-parts.ts'
import type { Read } from '../path/path.ts'
import { NoResult, shown } from '../path/value.ts'
import type { Finding, RecordContext } from '../types.ts'

export type Found = {
  /** Null where none has a value. */
  path: string | null
  /** The value in the message; undefined where there is none. */
  raw: unknown
  /** Why it has none, or what `values` made of it; null where there is nothing to say. */
  note: string | null
  /** What was written of it; undefined where nothing was. */
  written?: string
  /** Why it was left out. */
  why?: string
}

/** What the fields of one record read. */
export class RecordNotes {
  readonly found = new Map<FieldNote, Found>()
  /** Of the field that was read and is not written yet. */
  current: Found | null = null

  /** `key`: as the value is counted, `SOURCE|FIELD|REASON`. */
  omitted(key: string): void {
    const { current } = this
    if (current === null) return
    const hint = hexHint(current.raw)
    const reason = key.slice(key.lastIndexOf('|') + 1)
    current.why ??= hint === undefined ? reason : `${reason}. ${hint}`
  }

  implausible({ key, isSent, rule }: Finding, value: number): void {
    const reason = key.slice(key.lastIndexOf('|') + 1)
    const why = `${value} is ${reason}: ${rule}${isSent ? '; sent and counted' : ''}`
    if (this.current !== null) this.current.why ??= why
  }
}

export class SourceNotes {
  /** By option: `speed`, `signals.0`, `fields.gps.altitude`, `device.0`. */
  readonly fields = new Map<string, FieldNote>()
  /** What judges the parts of a condition, by its text. */
  readonly conditions = new Map<string, JudgeParts>()
  /** Of the record that is being read. */
  record = new RecordNotes()

  /** The notes of the next record. */
  begin(): RecordNotes {
    this.record = new RecordNotes()
    return this.record
  }
}

export class FieldNote {
  readonly #of: SourceNotes
  /** As they are written in the config. */
  paths: readonly string[] = []
  /** Of a signal. */
  sentUnit: string | null = null
  /** Reads it, and notes what it finds. */
  read: Read = () => undefined
  /** Writes it; null for a field that is no value of a payload by itself. */
  write: ((context: RecordContext) => unknown) | null = null

  constructor(of: SourceNotes) {
    this.#of = of
  }

  get found(): Found | undefined {
    return this.#of.record.found.get(this)
  }

  /** The first one of a record counts: a filter may read the field once more. */
  note(found: Found): void {
    const { record } = this.#of
    if (record.found.has(this)) return
    record.found.set(this, found)
    record.current = found
  }

  amend(note: string): void {
    if (this.found !== undefined) this.found.note = note
  }

  wrote(text: string | undefined | null): void {
    if (this.found !== undefined && text) this.found.written = text
    this.#of.record.current = null
  }
}

/** Under a symbol, so that nothing that walks the options of a field comes to it. */
export const noteKey: unique symbol = Symbol('note')

/** An option that may have a note. */
export type Notable = { readonly [noteKey]?: FieldNote }

/** The note of a field, for what is compiled of it. */
export function noteOf(field: object): Notable {
  const { [noteKey]: note } = field as Notable
  return note === undefined ? {} : { [noteKey]: note }
}

/** The same options, with a note at each. */
export function withNotes<Options>(options: Options, notes: SourceNotes, at = ''): Options {
  if (typeof options !== 'object' || options === null) return options
  const inner = Object.entries(options).map(([key, option]) => [
    key,
    withNotes<unknown>(option, notes, at === '' ? key : `${at}.${key}`),
  ])
  if (Array.isArray(options)) return inner.map(([, option]) => option) as Options
  const note = new FieldNote(notes)
  notes.fields.set(at, note)
  return { ...Object.fromEntries(inner), [noteKey]: note } as Options
}

/** One path of a field, or its expression. */
export type Candidate = {
  text: string
  condition: string | null
  /** The value in the message. */
  raw: Read
  /** The same where it counts. */
  usable: Read
}

/** The first usable value; notes where it is, or what is there instead. */
export function notingFirst(candidates: readonly Candidate[], note: FieldNote): Read {
  note.paths = candidates.map(({ text }) => text)
  return (place) => {
    let best: Found = { path: null, raw: undefined, note: 'absent' }
    let value: unknown
    for (const { text, raw, usable, condition } of candidates) {
      const found = raw(place)
      value = usable(place)
      if (isThere(value)) {
        const isNone = found instanceof NoResult
        const why = isNone ? `no value: ${found.reason}` : null
        note.note({ path: text, raw: isNone ? undefined : found, note: why })
        return value
      }
      if (found !== undefined && best.raw === undefined)
        best = { path: text, raw: found, note: whyUnusable(found, condition) }
    }
    note.note(best)
    return candidates.length === 1 ? value : undefined
  }
}

function whyUnusable(found: unknown, condition: string | null): string {
  if (!isThere(found)) return 'absent'
  if (condition !== null) return `${shown(found)} does not count: ${condition} is false`
  return `${shown(found)} means "no value" (\`absent\`)`
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** The same; where the field has a note, what it writes is noted. */
export function notingWritten<Text extends string | undefined | null>(
  { [noteKey]: note }: Notable,
  write: (context: RecordContext) => Text,
): (context: RecordContext) => Text {
  if (note === undefined) return write
  const noting = (context: RecordContext) => {
    const written = write(context)
    note.wrote(written)
    return written
  }
  note.write ??= noting
  return noting
}
