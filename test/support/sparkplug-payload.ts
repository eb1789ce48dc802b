// sparkplug-payload.ts: Sparkplug B payloads as a node writes them, for tests. Shares no code with the decoder
// under test.

export const types = {
  int8: 1,
  int16: 2,
  int32: 3,
  int64: 4,
  uint8: 5,
  uint16: 6,
  uint32: 7,
  uint64: 8,
  float: 9,
  double: 10,
  boolean: 11,
  string: 12,
  dateTime: 13,
  text: 14,
  uuid: 15,
  dataSet: 16,
  bytes: 17,
  file: 18,
  template: 19,
  int32Array: 24,
} as const

export type MetricOf = {
  name?: string
  alias?: number | bigint
  ts?: number | bigint
  /** Its data type on the wire; data messages leave it out. */
  type?: number
  historical?: boolean
  null?: boolean
  /** At most one of them. */
  int?: number
  long?: bigint | number
  float?: number
  double?: number
  bool?: boolean
  text?: string
  raw?: Buffer
}

export type PayloadOf = {
  ts?: number
  seq?: number
  metrics?: readonly MetricOf[]
  uuid?: string
  body?: Buffer
}

export function sparkplugPayload({ ts, seq, metrics = [], uuid, body }: PayloadOf): Buffer {
  return Buffer.concat([
    ...varintField(1, ts),
    ...metrics.flatMap((metric) => bytesField(2, metricOf(metric))),
    ...varintField(3, seq),
    ...bytesField(4, uuid === undefined ? undefined : Buffer.from(uuid)),
    ...bytesField(5, body),
  ])
}

function metricOf(metric: MetricOf): Buffer {
  return Buffer.concat([
    ...bytesField(1, metric.name === undefined ? undefined : Buffer.from(metric.name)),
    ...varintField(2, metric.alias),
    ...varintField(3, metric.ts),
    ...varintField(4, metric.type),
    ...varintField(5, metric.historical === undefined ? undefined : Number(metric.historical)),
    ...varintField(7, metric.null === undefined ? undefined : Number(metric.null)),
    ...varintField(10, metric.int === undefined ? undefined : metric.int >>> 0),
    ...varintField(11, metric.long),
    ...fixedField(12, 4, metric.float),
    ...fixedField(13, 8, metric.double),
    ...varintField(14, metric.bool === undefined ? undefined : Number(metric.bool)),
    ...bytesField(15, metric.text === undefined ? undefined : Buffer.from(metric.text)),
    ...bytesField(16, metric.raw),
  ])
}

function varint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

function varintField(field: number, value: number | bigint | undefined): Buffer[] {
  return value === undefined ? [] : [varint(field * 8), varint(value)]
}

function bytesField(field: number, value: Buffer | undefined): Buffer[] {
  return value === undefined ? [] : [varint(field * 8 + 2), varint(value.length), value]
}

function fixedField(field: number, bytes: 4 | 8, value: number | undefined): Buffer[] {
  if (value === undefined) return []
  const written = Buffer.alloc(bytes)
  if (bytes === 4) written.writeFloatLE(value)
  else written.writeDoubleLE(value)
  return [varint(field * 8 + (bytes === 4 ? 5 : 1)), written]
}
