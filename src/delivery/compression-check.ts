// compression-check.ts: tries delivery.compress for `check --connect`, with a signed batch that has no
// payloads: once compressed and, if the service refuses that, once as it is, so that the answer shows whether
// the compression is at fault. It sends no telemetry.

import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Outcome } from '../domain/outcome.ts'
import { createCheckSubmitter, type CheckDeps } from './check-submitter.ts'
import { createCredentials } from './credentials/credentials.ts'
import type { ProviderOptions } from './delivery-options.ts'

type CompressionFinding = { ok: boolean; what: string; why?: string; act?: string }

const accepted: CompressionFinding = {
  ok: true,
  what: 'The service accepts requests compressed with gzip.',
}

/**
 * Null where `delivery.compress` is off. Rejects with CREDENTIALS_MISSING, and as transportOptions() does.
 */
export async function checkCompression(
  deps: CheckDeps,
  provider: ProviderOptions,
): Promise<CompressionFinding | null> {
  if (provider.compress === 'off') return null
  const credentials = await createCredentials(
    { ...deps, proxy: provider.proxy },
    provider.credentials,
  ).current()
  const submitter = await createCheckSubmitter(deps, provider, credentials)
  const batch = () => Buffer.from(`{"batchId":"${randomUUID()}","timestamp":${deps.clock.now()},"data":[]}`)
  try {
    const compressed = await submitter.send(gzipSync(batch()), 'gzip')
    if (isAccepted(compressed)) return accepted
    const plain = await submitter.send(batch(), null)
    if (wasRead(compressed) && textOf(compressed) === textOf(plain)) return accepted
    return findingOf(textOf(compressed), textOf(plain), isAccepted(plain))
  } finally {
    await submitter.close()
  }
}

function findingOf(compressed: string, plain: string, plainAccepted: boolean): CompressionFinding {
  if (plainAccepted)
    return {
      ok: false,
      what: 'The service does not accept requests compressed with gzip.',
      why: `Its answer to a compressed batch: ${compressed}. It accepts the same batch without compression.`,
      act: 'Set delivery.compress to off, or ask the operator of the service to accept gzip.',
    }
  const what =
    `It is not known whether the service accepts gzip. Its answer to an empty batch: ${compressed}; ` +
    `without compression: ${plain}.`
  return { ok: true, what }
}

/** A refusal that names fields: the service has read the body. */
function wasRead(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.details.length > 0
}

function isAccepted({ kind }: Outcome): boolean {
  return kind === 'answered'
}

function textOf(outcome: Outcome): string {
  const status = 'status' in outcome ? `${outcome.status}, ` : ''
  return 'message' in outcome ? `${status}${outcome.message}` : outcome.kind
}
