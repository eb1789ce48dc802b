// accounts.ts: the registered accounts, each with the public key that verifies its requests.

import type { KeyObject } from 'node:crypto'
import { assert } from '../../std/assert.ts'
import { Secret } from '../../std/secret.ts'
import { derivePublicKey } from './public-key.ts'

export type SandboxAccount = {
  accessKeyId: string
  secret: Secret
  /** Where set, each request must carry this token; otherwise no request may carry one. */
  sessionToken?: Secret
  /** Submits for several providers, and must name one in X-Provider-Key (ingestion-api.md 5). */
  aggregator?: boolean
  /** The known provider keys of an aggregator; without them every key is known. */
  providers?: readonly string[]
}

/**
 * The account of `trial`, and the default of a sandbox. The documentation shows its secret, so it protects
 * nothing; it only makes sure that every request is signed.
 */
export const sandboxAccount: SandboxAccount = {
  accessKeyId: 'SANDBOXACCOUNT',
  secret: new Secret('the-sandbox-account-protects-nothing'),
}

export type Account = {
  accessKeyId: string
  publicKey: KeyObject
  sessionToken: Secret | null
  aggregator: boolean
  providers: ReadonlySet<string> | null
}

export type Accounts = ReadonlyMap<string, Account>

export function registerAccounts(accounts: readonly SandboxAccount[]): Accounts {
  assert(accounts.length > 0, 'a sandbox without accounts would refuse every request')
  const registered = new Map<string, Account>()
  for (const account of accounts) {
    assert(!registered.has(account.accessKeyId), 'an access key id is registered once')
    registered.set(account.accessKeyId, {
      accessKeyId: account.accessKeyId,
      publicKey: derivePublicKey(account.accessKeyId, account.secret.reveal()),
      sessionToken: account.sessionToken ?? null,
      aggregator: account.aggregator ?? false,
      providers: account.providers ? new Set(account.providers) : null,
    })
  }
  return registered
}
