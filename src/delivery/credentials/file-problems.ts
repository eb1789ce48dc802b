// file-problems.ts: says what is wrong with a file of credentials, and where. No text of the file is quoted:
// it is secret (invariant 11).

import { homedir } from 'node:os'
import { join } from 'node:path'
import { createBoundedUtf8Reader } from '../../std/file-system/utf8-text.ts'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { Environment } from '../proxy.ts'

/** Of a text that is not JSON: where it stops to be JSON. */
export function jsonProblem(text: string): string {
  if (text.trim() === '') return 'the file is empty'
  // The messages of the parser do not always have the place. All starts of JSON end too early; others do not.
  let [whole, broken] = [0, text.length]
  if (endsTooEarly(text)) return 'the file is not JSON: it ends too early'
  while (broken - whole > 1) {
    const middle = (whole + broken) >> 1
    if (endsTooEarly(text.slice(0, middle))) whole = middle
    else broken = middle
  }
  const before = text.slice(0, whole).split('\n')
  return `the file is not JSON at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

function endsTooEarly(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const position = /at position (\d+)/.exec(String(error))?.[1]
    return /Unexpected end|Unterminated/.test(String(error)) || Number(position) >= text.length
  }
}

/** Of the shared file of the AWS tools. Null where it is whole or missing: then the chain looks elsewhere. */
export async function sharedFileProblem(env: Environment, profile: string | null): Promise<string | null> {
  const path = env['AWS_SHARED_CREDENTIALS_FILE'] ?? join(homedir(), '.aws', 'credentials')
  const name = profile ?? env['AWS_PROFILE'] ?? 'default'
  let text: string
  try {
    text = await createBoundedUtf8Reader()(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    return `${path} cannot be read (${codeOf(error) ?? messageOf(error)})`
  }
  const found = new Map<string, Set<string>>()
  let keys: Set<string> | null = null
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const section = /^\s*\[\s*(.*?)\s*\]\s*([#;].*)?$/.exec(line)?.[1]
    const key = /^\s*([^=\s]+)\s*=\s*\S/.exec(line)?.[1]
    if (section !== undefined) {
      keys = found.get(section) ?? new Set()
      found.set(section, keys)
    } else if (key !== undefined && keys !== null) keys.add(key.toLowerCase())
    else if (!/^\s*([#;].*)?$/.test(line))
      return `${path} has at line ${index + 1} neither [PROFILE] nor KEY = VALUE of a profile`
  }
  const own = found.get(name)
  if (own === undefined) return `${path} has no profile ${quote(name, 64)}`
  // A profile may name another source, such as a role or a process.
  if ([...own].some((key) => !/^aws_(access_key_id|secret_access_key|session_token)$/.test(key))) return null
  const lacking = ['aws_access_key_id', 'aws_secret_access_key'].filter((key) => !own.has(key))
  return lacking.length === 0
    ? null
    : `the profile ${quote(name, 64)} in ${path} has no ${lacking.join(' and no ')}`
}
