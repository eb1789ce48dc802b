// extract.ts: the option `extract`: values that are packed inside others (bytes as base64 or hex, CAN frames,
// JSON in a text) are unpacked before anything else is read.
//
// An unpacked value is added beside the values of the message and never replaces one. The message itself does
// not change: a record that gets a value is a copy. Only what is decrypted replaces a value of the message:
// else a message could say what was in its box. The extractors run in order, each on the result of those
// before.

import { isUtf8 } from 'node:buffer'
import { bytesFromBase64, bytesFromHex } from '../encodings/text-bytes.ts'
import type { ExtractConfig } from './extract-config.ts'
import { compileJ1939, type OnOther } from './j1939.ts'
import { compileObd } from './obd.ts'
import { decodeJson } from '../encodings/lenient-json.ts'
import { compileLayout } from './binary-layout.ts'
import { nmeaIn } from '../encodings/nmea.ts'
import { compileDecodedPositions } from './decoded-positions.ts'
import { openBox, type KeysFor } from './secretbox.ts'
import { compilePaths } from '../path/path.ts'
import { isRecord, setOwn } from '../path/path-eval.ts'
import { compileCondition } from '../expression/expression.ts'
import type { Up } from '../types.ts'

/** The record with its unpacked values; the same object where there are none. */
export type Extract = (record: unknown, root: unknown, captures: readonly string[], up?: Up) => unknown

export type Extractor = { into: string; find: Extract; replaces: boolean }

export type ExtractDeps = {
  /** The keys of the source. */
  keysFor?: KeysFor
  onOther?: OnOther
}

type Unpack = (value: unknown) => unknown

/** Throws Malformed. */
export function compileExtractor(
  entry: ExtractConfig,
  captureNames: readonly string[],
  { keysFor = () => [], onOther }: ExtractDeps = {},
): Extractor {
  const holds = entry.when === undefined ? null : compileCondition(entry.when, captureNames)
  const find = compileFind(entry, keysFor, onOther)
  return {
    into: entry.into,
    replaces: entry.as === 'secretbox',
    find: (record, root, captures, up) =>
      holds && !holds(record, root, captures, up) ? undefined : find(record, root, captures, up),
  }
}

function compileFind(entry: ExtractConfig, keysFor: KeysFor, onOther: OnOther | undefined): Extract {
  if (entry.as === 'positions') return compileDecodedPositions(entry.from)
  const read = compilePaths(entry.from)
  if (entry.as === 'secretbox')
    return (record, root, captures, up) => openBox(read(record, root, up), keysFor(captures))
  const unpack = compileUnpack(entry, onOther)
  return (record, root, _captures, up) => unpack(read(record, root, up))
}

/** Runs the extractors in order, each on the result of those before. */
export function compileExtract(extractors: readonly Extractor[]): Extract {
  return (record, root, captures, up) => {
    if (!isRecord(record)) return record
    let extended = record
    for (const { into, find, replaces } of extractors) {
      if (!replaces && Object.hasOwn(extended, into)) continue
      const found = find(extended, root === record ? extended : root, captures, up)
      if (found === undefined) continue
      if (extended === record) extended = { ...record }
      setOwn(extended, into, found)
    }
    return extended
  }
}

function compileUnpack(
  entry: Exclude<ExtractConfig, { as: 'positions' | 'secretbox' }>,
  onOther?: OnOther,
): Unpack {
  switch (entry.as) {
    case 'base64':
      return compileBytes(bytesFromBase64, entry.layout)
    case 'hex':
      return compileBytes(bytesFromHex, entry.layout)
    case 'j1939':
      return compileJ1939(entry.signals, onOther)
    case 'obd':
      return compileObd(entry.signals)
    case 'nmea':
      return nmeaIn
    case 'json':
    default:
      return jsonIn
  }
}

function compileBytes(
  bytesFrom: (text: string) => Buffer | undefined,
  layout: Parameters<typeof compileLayout>[0] | undefined,
): Unpack {
  const read = layout ? compileLayout(layout) : textOf
  return (value) => {
    const bytes = typeof value === 'string' ? bytesFrom(value) : undefined
    return bytes && read(bytes)
  }
}

function textOf(bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString() : undefined
}

function jsonIn(value: unknown): unknown {
  if (typeof value !== 'string') return undefined
  const decoded = decodeJson(Buffer.from(value))
  return decoded.kind === 'value' && decoded.broken === undefined ? decoded.value : undefined
}
