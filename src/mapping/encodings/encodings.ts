// encodings.ts: the table of the encodings of messages. The option `encoding`, its reference and the mapper
// use it. One entry here adds an encoding.
//
//   decode          for messages that stand alone: bytes to the value that paths read. Total and pure
//   createDecoder   for messages that explain each other: one decoder with memory for each source. It decodes
//                   in the order of arrival and before the device is known; the changes of its memory are
//                   committed with the message and restored after a start (types.ts)
//
// What can go wrong: bytes that are not of the encoding are refused as a whole, with a reason of reasons.ts
// and a sentence that names the place. A decoder allocates nothing that the bytes do not fill, and its memory
// is bounded.

import { sparkplug } from '../sparkplug/sparkplug.ts'
import type { Encoding } from '../types.ts'
import { decodeCbor } from '../binary-values/cbor.ts'
import { decodeMessagePack } from '../binary-values/message-pack.ts'
import { compileBody, type BodyOptions } from '../body/body.ts'
import { csvDecoder, decodeScalar, decodeText } from './csv-lines.ts'
import { decodeIotm } from './iotm.ts'
import { decodeKura } from './kura.ts'
import { decodeJson } from './lenient-json.ts'
import { decodeNmea } from './nmea.ts'
import { decodeTeltonika } from './teltonika.ts'

const table = {
  json: {
    decode: decodeJson,
    isText: true,
    description: 'a JSON document, usually an object; several objects, such as JSON lines, are a list',
  },
  text: {
    decode: decodeText,
    isText: true,
    description: 'the whole message is one text, at the path `value`',
  },
  scalar: {
    decode: decodeScalar,
    isText: true,
    description: 'as `text` without blanks around it, and an empty text is no value',
  },
  csv: {
    decode: csvDecoder(','),
    isText: true,
    description: 'each line is a record with `fields`, which are between commas',
  },
  'csv-semicolon': { decode: csvDecoder(';'), isText: true, description: 'the same, between semicolons' },
  'csv-tab': { decode: csvDecoder('\t'), isText: true, description: 'the same, between tabs' },
  cbor: { decode: decodeCbor, description: 'a value of CBOR, usually an object' },
  msgpack: { decode: decodeMessagePack, description: 'a value of MessagePack, usually an object' },
  teltonika: {
    decode: decodeTeltonika,
    description: 'a binary frame of Codec 8, 8 Extended or 16, with `records`',
  },
  nmea: {
    decode: decodeNmea,
    description: 'sentences of NMEA 0183, with a record for each fix in `records`',
  },
  iotm: { decode: decodeIotm, description: 'a binary message of an IOTM tracker, with `records`' },
  kura: {
    decode: decodeKura,
    description: 'a payload of Eclipse Kura, with `position`, `metrics` by name and `body`',
  },
  sparkplug,
} as const satisfies Record<string, Encoding>

export type EncodingName = keyof typeof table

const encodings: Readonly<Record<EncodingName, Encoding>> = table

/** The encoding with the other options of the source for its bytes. */
export function encodingOf(name: EncodingName, options: Omit<BodyOptions, 'encoding' | 'isText'>): Encoding {
  const encoding = encodings[name]
  if (encoding.decode === undefined) {
    const { limits } = options
    return { ...encoding, createDecoder: ({ source }) => encoding.createDecoder({ source, limits }) }
  }
  return {
    ...encoding,
    decode: compileBody(encoding.decode, { ...options, encoding: name, isText: isText(name) }),
  }
}

/** It needs the messages in the order in which they were sent. */
export function isStateful(name: EncodingName): boolean {
  return encodings[name].createDecoder !== undefined
}

export function isText(name: EncodingName): boolean {
  return encodings[name].isText === true
}

/** In the order of the table, and typed for an enumeration of the schema. */
export const encodingNames = Object.keys(table) as [EncodingName, ...EncodingName[]]

/** For the reference of the config. */
export const encodingsDescription = `${encodingNames
  .map((name) => `\`${name}\`: ${encodings[name].description}`)
  .join('; ')}.`

const stateKeyPrefixes = Object.values<Encoding>(table).flatMap(({ stateKeyPrefix = [] }) => stateKeyPrefix)

/** Whether an entry of the state in the spool belongs to a decoder. */
export function isDecoderState(key: string): boolean {
  return stateKeyPrefixes.some((prefix) => key.startsWith(prefix))
}
