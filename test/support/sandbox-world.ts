// sandbox.ts: a sandbox on loopback, and a client that signs with the package of AWS, which the sandbox does
// not use.

import { createHash, createHmac, randomUUID, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4a } from '@smithy/signature-v4a'
import {
  createSandbox,
  sandboxAccount,
  type Sandbox,
  type SandboxAccount,
  type SandboxOptions,
} from '../../src/sandbox/sandbox.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'

/** The hash that the signer asks for. */
class Sha256 {
  #hash: Hash | Hmac
  readonly #secret: Uint8Array | string | undefined

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined || typeof secret === 'string' ? secret : bytesOf(secret)
    this.#hash = this.#fresh()
  }

  #fresh(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret)
  }

  update(chunk: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(typeof chunk === 'string' ? chunk : bytesOf(chunk))
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }

  reset(): void {
    this.#hash = this.#fresh()
  }
}

function bytesOf(source: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source)
}

const jsonType = { 'content-type': 'application/json' }

export type SignOptions = {
  account?: SandboxAccount
  sessionToken?: string
  region?: string
  service?: string
  signedAt?: number
  headers?: Record<string, string>
  method?: string
  /** `unsigned`: it is sent, but is not one of the signed headers. */
  contentType?: 'unsigned'
}

export type SignedCall = {
  url: string
  method: string
  headers: Record<string, string>
  body: string | Buffer
}

export async function signed(
  url: string,
  body: string | Buffer,
  clock: { now(): number },
  options: SignOptions = {},
): Promise<SignedCall> {
  const { account = sandboxAccount, method = 'POST' } = options
  const { host, hostname, port, pathname, protocol } = new URL(url)
  const token = options.sessionToken
  const signer = new SignatureV4a({
    credentials: {
      accessKeyId: account.accessKeyId,
      secretAccessKey: account.secret.reveal(),
      ...(token === undefined ? {} : { sessionToken: token }),
    },
    region: options.region ?? '*',
    service: options.service ?? 'execute-api',
    sha256: Sha256,
  })
  const request = await signer.sign(
    {
      method,
      protocol,
      hostname,
      port: Number(port),
      path: pathname,
      headers: { host, ...(options.contentType ? {} : jsonType), ...options.headers },
      body,
    },
    { signingDate: new Date(options.signedAt ?? clock.now()) },
  )
  return { url, method, headers: { ...jsonType, ...request.headers }, body }
}

export type Told = {
  status: number
  headers: Headers
  text: string
  /** The body as JSON; an empty object where it is none. */
  json: Record<string, unknown>
}

export async function call({ url, headers, method, body }: SignedCall): Promise<Told> {
  const answer = await fetch(url, { method, headers, body, redirect: 'manual' })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, json: parsed(text) }
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}

export type SandboxWorld = {
  sandbox: Sandbox
  clock: FakeClock
  url: string
  /** Signs and submits; the body is sent as it is where it is text. */
  single(body: unknown, options?: SignOptions): Promise<Told>
  batch(body: unknown, options?: SignOptions): Promise<Told>
  look(path: string): Promise<Told>
  putFaults(faults: unknown): Promise<Told>
  [Symbol.asyncDispose](): Promise<void>
}

export async function openSandbox(
  options: Partial<SandboxOptions> = {},
  random: () => number = Math.random,
): Promise<SandboxWorld> {
  const clock = createFakeClock()
  const sandbox = createSandbox(
    { clock, newId: () => randomUUID(), random },
    { accounts: [sandboxAccount], ...options },
  )
  const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })
  const { origin } = new URL(url)
  const post = async (path: string, body: unknown, sign?: SignOptions) =>
    call(
      await signed(
        url + path,
        typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
        clock,
        sign,
      ),
    )
  return {
    sandbox,
    clock,
    url,
    single: (body, sign) => post('/v2/telemetry', body, sign),
    batch: (body, sign) => post('/v2/telemetry/batch', body, sign),
    look: async (path) => {
      const answer = await fetch(origin + path)
      const text = await answer.text()
      return { status: answer.status, headers: answer.headers, text, json: parsed(text) }
    },
    putFaults: (faults) =>
      call({
        url: `${origin}/sandbox/faults`,
        method: 'PUT',
        headers: {},
        body: typeof faults === 'string' ? faults : JSON.stringify(faults),
      }),
    [Symbol.asyncDispose]: () => sandbox.close(),
  }
}

type Payload = Record<string, unknown> & { payloadId: string }

/** A payload with every field that the specification shows, all valid. */
export function telemetry(changes: Record<string, unknown> = {}): Payload {
  return {
    payloadId: randomUUID(),
    carrier: 'ACME',
    signalTimestamp: 1_763_700_000_000,
    assetIdentifier: { id: 'asset-7', type: 'TRACTOR', operator: 'OP1' },
    deviceIdentifier: { id: 'truck-7', manufacturer: 'Ruptela', model: 'HCV5' },
    gps: {
      latitude: 52.5,
      longitude: 13.4,
      speed: 83.2,
      speedUnits: 'KILOMETERS_PER_HOUR',
      heading: 270,
      inMotion: true,
    },
    signals: [
      {
        id: randomUUID(),
        type: 'OBD_LIFETIME_ODOMETER',
        value: '152340.7',
        valueUnit: 'KILOMETERS',
        assetPart: 'ENGINE',
      },
    ],
    ...changes,
  }
}

export function batchOf(payloads: readonly unknown[], batchId: string = randomUUID()) {
  return { batchId, timestamp: 1_763_700_000_000, data: payloads }
}
