// amqp-frames.ts: frames of AMQP 0-9-1 for the engine of the simulated world, by the codec of the package that the
// gateway uses. Its files are not part of its interface, so they are found by their path.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export type Fields = Readonly<Record<string, unknown>>
export type Headers = Readonly<Record<string, unknown>>

/** What came: a method, the header or a part of a message, or a heartbeat (on channel 0, with nothing). */
export type Frame = {
  channel: number
  id?: number
  fields?: Fields
  /** Of a header: the bytes of the message. */
  size?: number
  content?: Buffer
}

type Parsed = { rest: Buffer }
type Codec = {
  parseFrame(bytes: Buffer, max: number): Parsed | false
  decodeFrame(parsed: Parsed): Frame
  makeBodyFrame(channel: number, content: Buffer): Buffer
  HEARTBEAT_BUF: Buffer
}
type Definitions = {
  info(id: number): { name: string }
  encodeMethod(id: number, channel: number, fields: Fields): Buffer
  encodeProperties(id: number, channel: number, size: number, fields: Fields): Buffer
}

const load = createRequire(import.meta.url)
const folder = join(dirname(load.resolve('amqplib')), 'lib')
const codec = load(join(folder, 'frame.js')) as Codec
const definitions = load(join(folder, 'defs.js')) as Definitions

export const protocolHeader = Buffer.from('AMQP\0\0\u0009\u0001', 'latin1')
export const heartbeatFrame: Buffer = codec.HEARTBEAT_BUF
export const frameBytesMax = 131_072

/** `QueueDeclareOk` */
export function methodName(id: number): string {
  return definitions.info(id).name
}

/** The whole frames at the beginning, and the bytes behind them. */
export function framesIn(bytes: Buffer): { frames: Frame[]; rest: Buffer } {
  const frames: Frame[] = []
  let rest = bytes
  for (;;) {
    const parsed = codec.parseFrame(rest, 0)
    if (parsed === false) return { frames, rest }
    frames.push(codec.decodeFrame(parsed))
    rest = parsed.rest
  }
}

export function methodFrame(channel: number, name: string, fields: Fields): Buffer {
  return definitions.encodeMethod(numberOf(name), channel, fields)
}

/** A message behind its method: the header with its properties, and the body in as many frames as it takes. */
export function contentFrames(
  channel: number,
  { headers, body }: { headers: Headers; body: Buffer },
): Buffer {
  const properties = { headers, deliveryMode: 2 }
  const frames = [definitions.encodeProperties(numberOf('BasicProperties'), channel, body.length, properties)]
  for (let at = 0; at < body.length; at += frameBytesMax - 8)
    frames.push(codec.makeBodyFrame(channel, body.subarray(at, at + frameBytesMax - 8)))
  return Buffer.concat(frames)
}

function numberOf(name: string): number {
  const id = (definitions as unknown as Readonly<Record<string, number>>)[name]
  if (id === undefined) throw new Error(`AMQP has no method ${name}`)
  return id
}
