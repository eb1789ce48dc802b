// account-options.ts: the accounts of `sandbox`: --account, --session-token and --aggregator.

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { Secret } from '../../std/secret.ts'
import { sandboxAccount, type SandboxAccount } from '../../sandbox/sandbox.ts'

export type AccountOptions = { account: string[]; sessionToken: string[]; aggregator: string[] }

/** Throws USAGE. */
export function accountsOf({
  account: accountTexts,
  sessionToken,
  aggregator,
}: AccountOptions): SandboxAccount[] {
  const accounts = new Map<string, SandboxAccount>()
  for (const text of accountTexts) {
    const { id, rest } = splitAtColon(text, '--account', 'ID:SECRET')
    if (accounts.has(id)) throw usage(`The account ${quote(id)} is given twice.`, 'Give each account once.')
    accounts.set(id, { accessKeyId: id, secret: new Secret(rest) })
  }
  if (accounts.size === 0) accounts.set(sandboxAccount.accessKeyId, { ...sandboxAccount })
  const registered = (id: string, option: string) => {
    const account = accounts.get(id)
    if (account) return account
    throw usage(`${option} names the unknown account ${quote(id)}.`, 'Register it with --account.')
  }
  for (const text of sessionToken) {
    const { id, rest } = splitAtColon(text, '--session-token', 'ID:TOKEN')
    registered(id, '--session-token').sessionToken = new Secret(rest)
  }
  for (const text of aggregator) {
    const [id = '', providers] = text.split('=', 2)
    const account = registered(id, '--aggregator')
    account.aggregator = true
    if (providers !== undefined) account.providers = providers.split(',')
  }
  return [...accounts.values()]
}

function splitAtColon(text: string, option: string, form: string): { id: string; rest: string } {
  const at = text.indexOf(':')
  // The value may be a secret, so the error does not repeat it.
  if (at < 1 || at === text.length - 1)
    throw usage(`The value of ${option} is invalid.`, `Write it as ${form}.`)
  return { id: text.slice(0, at), rest: text.slice(at + 1) }
}

export function usage(what: string, act: string): GatewayError {
  return new GatewayError('USAGE', { what, why: 'The command line is wrong.', act })
}
