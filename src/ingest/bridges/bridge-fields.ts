// bridge-fields.ts: options of `ingest.bridges[]` that have one meaning in several kinds of bridges.

import { z } from 'zod'
import { duration, pem, pemKey, size } from '../../std/schema.ts'
import { pemPartsProblem } from '../../std/tls/pem.ts'
import type { BridgeTls } from './bridge-address.ts'

const dayMs = 86_400_000

/** A server may accept a bridge and deliver nothing, which must not be noticed late. */
export const unheardMs = 5 * 60_000

export const bridgeNameSchema = z
  .string()
  .regex(/^[\w-]{1,64}$/, { error: 'must have 1 to 64 letters, digits, "_" or "-"' })
  .describe('Name of the bridge in status, metrics and conditions.')

export const memberSchema = z
  .string()
  .regex(/^[\w.:-]{1,100}$/, { error: 'must have 1 to 100 letters, digits, "_", "-", "." or ":"' })
  .optional()
  .describe(
    'Name of this gateway among those that share the partitions; each needs its own. Default: the host name.',
  )

export const bridgeTlsSchema = z
  .strictObject({
    ca: pem('certificate')
      .optional()
      .describe(
        'Authorities of the certificate of the broker: the path of a PEM file, or PEM text. Default: those of Node.',
      ),
    cert: pem('certificate')
      .optional()
      .describe(
        'Certificate of the gateway, where the broker asks for one: the path of a PEM file, or PEM text.',
      ),
    key: pemKey()
      .optional()
      .describe('Private key of `cert`: the path of a PEM file, `${file:PATH}` or `${env:NAME}`.'),
    server_name: z
      .string()
      .min(1)
      .optional()
      .describe('Name in the certificate of the broker. Default: the host of `url`.'),
  })
  .superRefine(({ ca, cert, key }, context) => {
    if ((cert === undefined) === (key === undefined)) {
      const message = pemPartsProblem({ ca, cert, key: key?.reveal() })
      if (message !== null) context.addIssue({ code: 'custom', message })
      return
    }
    const [missing, given] = cert === undefined ? ['cert', 'key'] : ['key', 'cert']
    context.addIssue({ code: 'custom', path: [given], message: `needs ${missing}, too` })
  })

export function tlsOptions(tls: z.output<typeof bridgeTlsSchema> | undefined): BridgeTls {
  return {
    ca: tls?.ca ?? null,
    cert: tls?.cert ?? null,
    key: tls?.key ?? null,
    serverName: tls?.server_name ?? null,
  }
}

export function windowSchema(meaning: string) {
  return z.int().min(1).max(65_535).default(1000).describe(meaning)
}

/** `silence`: what else is to be said of `silent_after`. */
export function timeFields(texts: { connectTimeout: string; firstDelay: string; silence: string }) {
  return {
    connect_timeout: duration({ minMs: 100, maxMs: 600_000 }).default(10_000).describe(texts.connectTimeout),
    reconnect_max: duration({ minMs: 1000, maxMs: 3_600_000 })
      .default(60_000)
      .describe(
        `Longest pause between two tries. It starts with ${texts.firstDelay} and doubles, with jitter.`,
      ),
    silent_after: duration({ minMs: 1000, maxMs: 30 * dayMs })
      .default(30 * 60_000)
      .describe(
        'If no message comes for this time, the bridge connects again and raises the condition MESSAGE_SOURCE_SILENT. ' +
          texts.silence,
      ),
  }
}

type Times = { connect_timeout: number; reconnect_max: number; silent_after: number }

export function timeOptions(
  { connect_timeout, reconnect_max, silent_after }: Times,
  reconnectFirstMs: number,
) {
  return {
    connectTimeoutMs: connect_timeout,
    reconnectFirstMs,
    reconnectMaxMs: reconnect_max,
    pauseAfterMs: 2000,
    silentAfterMs: silent_after,
  }
}

export function messageBytesSchema(maxBytes: number) {
  return size({ minBytes: 1024, maxBytes })
    .default(16 * 1024 ** 2)
    .describe(
      'Largest message. A larger one is acknowledged and becomes a dead letter (`OVERSIZED`), whole up to 80KiB, ' +
        'beyond that without its bytes.',
    )
}
