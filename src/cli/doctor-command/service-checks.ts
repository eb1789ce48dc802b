// service-checks.ts: what the keys of each provider sign. Nothing is sent to the service with a signature
// without --signed-request.
//
// The check of our own signature sends one request to a sandbox of this process, which verifies it with code
// of its own: a failure there is a fault of the keys or of the gateway, and not of the account.

import { systemClock } from '../../std/clock.ts'
import { sendSignedRequest, type SigningKeys } from '../../delivery/delivery.ts'
import { newRandomId } from '../../domain/ids.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { createSandbox } from '../../sandbox/sandbox.ts'
import type { Finding, Provider } from '../check-command/connection-findings.ts'

type Io = { env: NodeJS.ProcessEnv; stop: AbortSignal }

/** What the keys of a provider sign. */
export async function* checkSignature(
  provider: Provider,
  keys: SigningKeys,
  { signedRequest, ...io }: Io & { signedRequest: boolean },
): AsyncGenerator<Finding> {
  yield await checkOwnSignature(provider, keys, io)
  if (signedRequest) yield await checkSignedRequest(provider, keys, io)
}

async function checkOwnSignature(provider: Provider, keys: SigningKeys, io: Io): Promise<Finding> {
  const about = { name: 'signature', providers: [provider.name] } as const
  const { accessKeyId, secret, sessionToken } = keys
  const account = {
    accessKeyId,
    secret,
    ...(sessionToken === null ? {} : { sessionToken }),
    aggregator: provider.providerKey !== null,
  }
  const sandbox = createSandbox(
    { clock: systemClock, newId: newRandomId, random: Math.random },
    { accounts: [account] },
  )
  try {
    const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })
    const local: Provider = {
      ...provider,
      baseUrl: url,
      proxy: { from: 'none' },
      ca: null,
      clientCertificate: null,
    }
    const outcome = await sendSignedRequest({ clock: systemClock, ...io }, local, keys)
    if (outcome.kind === 'refused')
      return { ...about, state: 'ok', what: 'Our own check verifies a signature of these keys.' }
    return {
      ...about,
      state: 'failed',
      what: 'Our own check does not verify a signature of these keys.',
      why: `${answerText(outcome)}.`,
      act: 'Enter the keys again: the secret or the session token contains other characters than it should.',
    }
  } finally {
    await sandbox.close()
  }
}

async function checkSignedRequest(provider: Provider, keys: SigningKeys, io: Io): Promise<Finding> {
  const outcome = await sendSignedRequest({ clock: systemClock, ...io }, provider, keys)
  return { name: 'service', providers: [provider.name], ...judged(outcome) }
}

const onlyIf =
  'This proves the signature and the account only if the service authenticates before it validates.'

type Judgement = Pick<Finding, 'state' | 'why' | 'act'>

const unlike: Judgement = {
  state: 'warning',
  why: `The specification demands 400. ${onlyIf}`,
  act: 'Check that delivery.base_url is that of the ingestion API.',
}

/** What each outcome of a batch without batchId means. */
const judgements: Record<Exclude<Outcome['kind'], 'refused'>, Judgement> = {
  unauthorized: {
    state: 'failed',
    why:
      'The signature is wrong, the account is not registered for this service, or a firewall refuses the ' +
      'request.',
    act:
      'If the check `signature` is ok, give the operator of the service the access key, its account and the ' +
      'requestId; check delivery.provider_key, the clock, and what a proxy or firewall in between changes.',
  },
  unexpected: {
    state: 'failed',
    why: `There is no ingestion API at delivery.base_url. ${onlyIf}`,
    act: 'Correct delivery.base_url: the URL without /v2/telemetry, of the service itself and not of a redirect.',
  },
  unavailable: {
    state: 'failed',
    why: `The service fails or limits requests. ${onlyIf}`,
    act: 'Try again; if it stays, give the operator of the service the requestId.',
  },
  unreachable: { state: 'failed', act: 'Check the network of this machine and delivery.base_url.' },
  aborted: { state: 'skipped' },
  answered: unlike,
  accepted_single: unlike,
  repeated: unlike,
  unreadable: unlike,
  interrupted: unlike,
}

function judged(outcome: Outcome): Judgement & { what: string } {
  const what = `Answer to a signed request without effect: ${answerText(outcome)}.`
  if (outcome.kind === 'refused' && outcome.status === 400)
    return { state: 'ok', what, why: `The specification demands this 400. ${onlyIf}` }
  if (outcome.kind === 'refused') return { what, ...unlike }
  const judgement = judgements[outcome.kind]
  const own = outcome.kind === 'unreachable' && outcome.act !== undefined ? { act: outcome.act } : {}
  return { what, ...judgement, ...own }
}

function answerText(outcome: Outcome): string {
  const status = 'status' in outcome ? `${outcome.status}` : statusOf(outcome)
  const parts = [
    status,
    ...('message' in outcome && outcome.message !== '' ? [outcome.message.replace(/\.$/, '')] : []),
    ...('requestId' in outcome && outcome.requestId !== null ? [`requestId ${outcome.requestId}`] : []),
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function statusOf({ kind }: Outcome): string {
  if (kind === 'answered') return '200'
  if (kind === 'accepted_single') return '202'
  if (kind === 'repeated') return '409'
  return kind === 'unreachable' ? 'none' : kind
}
