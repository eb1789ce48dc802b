// extract.ts: the option `extract`: values that are packed inside others (bytes as base64 or hex, CAN frames,
// JSON in a text) are unpacked before anything else is read.
//
// An unpacked value is added beside the values of the message, or of each record where the message is a list,
// and never replaces one. The message itself does not change: a record that gets a value is a copy. Only what
// is decrypted replaces a value of the message: else a message could say what was in its box. The extractors
// run in order, each on the result of those before.

import { isUtf8 } from 'node:buffer'
import { bytesFromBase64, bytesFromHex } from '../encodings/text-bytes.ts'
import type { ExtractConfig } from './extract-config.ts'
import { compileJ1939, type OtherController } from './j1939.ts'
import { compileObd } from './obd.ts'
import { decodeJson } from '../encodings/lenient-json.ts'
import { compileLayout } from './binary-layout.ts'
import { nmeaIn } from '../encodings/nmea.ts'
import { compileDecodedPositions } from './decoded-positions.ts'
import { openBox, type KeysFor } from './secretbox.ts'
import { compilePaths } from '../path/path.ts'
import { isRecord, setOwn } from '../path/path-eval.ts'
import { recordsMost } from '../path/record-selection.ts'
import { compileCondition } from '../expression/expression.ts'
import type { Place } from '../types.ts'

/** `others`: gets the values that other controllers send. */
type ExtractFrom = { captures: readonly string[]; others?: OtherController[] | undefined }

/** The message with its unpacked values; the same object where there are none. */
export type Extract = (message: unknown, from: ExtractFrom) => unknown

export type Extractor = { into: string; find: Extract; replaces: boolean }

/** `others`: as in `ExtractFrom`. */
type Unpack = (value: unknown, others?: OtherController[]) => unknown

/** `keysFor`: the keys of the source. Throws Malformed. */
export function compileExtractor(
  entry: ExtractConfig,
  captureNames: readonly string[],
  keysFor: KeysFor = () => [],
): Extractor {
  const holds = entry.when === undefined ? null : compileCondition(entry.when, captureNames)
  const find = compileFind(entry, keysFor)
  return {
    into: entry.into,
    replaces: entry.as === 'secretbox',
    find: (message, from) => (holds && !holds(placeOf(message, from)) ? undefined : find(message, from)),
  }
}

function compileFind(entry: ExtractConfig, keysFor: KeysFor): Extract {
  if (entry.as === 'positions') return compileDecodedPositions(entry.from)
  const read = compilePaths(entry.from)
  if (entry.as === 'secretbox')
    return (message, from) => openBox(read(placeOf(message, from)), keysFor(from.captures))
  const unpack = compileUnpack(entry)
  return (message, from) => unpack(read(placeOf(message, from)), from.others)
}

function placeOf(message: unknown, { captures }: ExtractFrom): Place {
  return { record: message, root: message, up: undefined, captures }
}

/** Runs the extractors in order, each on the result of those before; of a list, on each of its records. */
export function compileExtract(extractors: readonly Extractor[]): Extract {
  return (message, from) => {
    if (!Array.isArray(message)) return extendedBy(message, from)
    // A longer list is refused.
    if (message.length > recordsMost) return message
    const records = (message as unknown[]).map((record) => extendedBy(record, from))
    return records.some((record, index) => record !== message[index]) ? records : message
  }

  function extendedBy(message: unknown, from: ExtractFrom): unknown {
    if (!isRecord(message)) return message
    let extended = message
    for (const { into, find, replaces } of extractors) {
      if (!replaces && Object.hasOwn(extended, into)) continue
      const found = find(extended, from)
      if (found === undefined) continue
      if (extended === message) extended = { ...message }
      setOwn(extended, into, found)
    }
    return extended
  }
}

function compileUnpack(entry: Exclude<ExtractConfig, { as: 'positions' | 'secretbox' }>): Unpack {
  switch (entry.as) {
    case 'base64':
      return compileBytes(bytesFromBase64, entry.layout)
    case 'hex':
      return compileBytes(bytesFromHex, entry.layout)
    case 'j1939':
      return compileJ1939(entry.into, entry.signals)
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
