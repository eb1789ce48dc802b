// substitute.ts: replaces `${env:NAME}` and `${file:PATH}` in the values of the config.
//
//   ${env:NAME}    the environment variable without one line feed at its end; unset is a problem, empty is
//                  allowed
//   ${file:PATH}   the text of a file without one line feed at its end; the path is relative to the folder of
//                  the config file and may contain another one: ${file:${env:CREDENTIALS_DIRECTORY}/key}
//   $${            a literal ${
//
// Certificates, keys and authorities of TLS may be a path alone: what is not PEM text there is read as with
// ${file:PATH}. No other option is: a password that looks like a path would become another one.
//
// A substituted text is not searched for `${` again. It may be a secret, so it is never shown: a problem
// about such a value names its origin instead (hide()).

import { isScalar, visit, type Node, type Scalar } from 'yaml'
import { codeOf } from '../std/gateway-error.ts'
import { quote } from '../std/quote.ts'
import { lengthOf, mayHoldLogin } from '../std/shown-url.ts'
import { isPem } from '../std/tls/pem.ts'
import { NotUtf8Error } from '../std/file-system/utf8-text.ts'
import type { YamlSource, YamlProblem } from './yaml-source.ts'

type Substituted = {
  /** The text in the config, such as `${env:KEY}`; of a URL only its references. */
  written: string
  /** Every text that was inserted. */
  texts: readonly string[]
}

export type SubstituteDeps = {
  env: Readonly<Record<string, string | undefined>>
  /** Reads a path as written; relative ones from the config file's folder. */
  readText: (path: string) => Promise<string>
}

/** Values of options that name a file. `pem`: they may be PEM text, too. */
export type FileNodes = { pem: ReadonlySet<Node>; path: ReadonlySet<Node> }

export type Substitutions = {
  problems: readonly YamlProblem[]
  of(node: Node | undefined): Substituted | undefined
  /** Whether the substitution failed there: other problems of the value only follow from that. */
  failedAt(node: Node | undefined): boolean
  /** `text` without any inserted text. */
  hide(text: string): string
}

/** Shorter texts occur in a sentence by chance ("4", "on"). They are hidden only at their own path. */
const hiddenEverywhereMin = 4

/** Replaces the values in the tree of `source`. */
export async function substitute(
  source: YamlSource,
  deps: SubstituteDeps,
  { pem, path }: FileNodes = { pem: new Set(), path: new Set() },
): Promise<Substitutions> {
  const found: Scalar<string>[] = []
  visit(source.document, {
    Scalar(key, node) {
      if (key !== 'key' && isText(node) && (node.value.includes('${') || pem.has(node))) found.push(node)
    },
  })
  const problems: YamlProblem[] = []
  const substituted = new Map<Node, Substituted>()
  const failed = new Set<Node>()
  for (const node of found) {
    const written = node.value
    const texts: string[] = []
    const fail = (message: string) => {
      failed.add(node)
      problems.push({ ...source.positionOfNode(node), message })
    }
    if (path.has(node) && written.includes('${file:')) {
      fail(`${quote(written, 120)} puts the text of the file where its path is meant. Write the path alone.`)
      continue
    }
    const own = pem.has(node) ? { ...deps, readText: lenient(deps.readText) } : deps
    node.value = await expand(written, own, texts, fail)
    if (pem.has(node) && !failed.has(node) && isPemPath(written, node.value))
      node.value = await readPem(written, node.value.trim(), own, texts, fail)
    if (texts.length > 0) substituted.set(node, { written: originOf(written), texts })
  }
  return {
    problems,
    of: (node) => (node ? substituted.get(node) : undefined),
    failedAt: (node) => node !== undefined && failed.has(node),
    hide,
  }

  function hide(text: string): string {
    let hidden = text
    for (const { written, texts } of substituted.values()) {
      for (const secret of texts) {
        if (secret.length < hiddenEverywhereMin) continue
        for (const form of [secret, JSON.stringify(secret).slice(1, -1)])
          hidden = hidden.replaceAll(form, `*** (${written})`)
      }
    }
    return hidden
  }
}

/** What is binary is no PEM text: pemProblem says so. */
function lenient(readText: SubstituteDeps['readText']): SubstituteDeps['readText'] {
  return (path) =>
    readText(path).catch((error: unknown) => {
      if (error instanceof NotUtf8Error) return error.text
      throw error
    })
}

/** A key that was pasted without its first line is no path, and must not be shown. */
const pastedKey = /^[A-Za-z0-9+/=]{40,}$/
const pathLengthMax = 1024

function isPemPath(written: string, value: string): boolean {
  if (value.trim() === '' || isPem(value) || written.includes('${file:')) return false
  const isPasted = pastedKey.test(value.trim()) && !value.startsWith('/')
  return !isPasted && value.length <= pathLengthMax && !value.trim().includes('\n')
}

/** A path from the environment is not shown: it may be a secret that belongs elsewhere. */
async function readPem(
  written: string,
  path: string,
  deps: SubstituteDeps,
  texts: string[],
  fail: (message: string) => void,
): Promise<string> {
  try {
    const text = (await deps.readText(path)).replace(/\r?\n$/, '')
    texts.push(text)
    return text
  } catch (error) {
    fail(`${quote(written, 120)}: ${unreadable(error)}`)
    return ''
  }
}

const readFailures: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such folder',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a folder',
}

/** The message of the error contains the path, which may itself be a secret. */
function unreadable(error: unknown): string {
  if (error instanceof NotUtf8Error) return `${error.message}.`
  const code = codeOf(error) ?? 'unknown error'
  const reason = readFailures[code]
  return `the file cannot be read (${code}${reason === undefined ? '' : `: ${reason}`}).`
}

function isText(node: Node): node is Scalar<string> {
  return isScalar(node) && typeof node.value === 'string'
}

async function expand(
  written: string,
  deps: SubstituteDeps,
  texts: string[],
  fail: (message: string) => void,
): Promise<string> {
  let result = ''
  let at = 0
  for (;;) {
    const start = written.indexOf('${', at)
    if (start < 0) return result + written.slice(at)
    if (start > at && written[start - 1] === '$') {
      result += `${written.slice(at, start - 1)}\${`
      at = start + 2
      continue
    }
    result += written.slice(at, start)
    const end = closingBrace(written, start + 2)
    if (end < 0) {
      fail(
        `"}" is missing after "\${" in ${mayHoldLogin(written) ? lengthOf(written) : quote(written)}. For a literal \${ write $\${.`,
      )
      return result
    }
    const text = await valueOf(written.slice(start + 2, end), deps, texts, fail)
    if (text !== undefined) texts.push(text)
    // Words, so that what contains it is not missing because of it: that would only be a further problem.
    result += text ?? 'unknown'
    at = end + 1
  }
}

/** Beside a reference there may be a password. */
function originOf(written: string): string {
  const references = written.match(/\$\{[^}]*\}+/g) ?? []
  const isUrl = mayHoldLogin(written.replaceAll(/\$\{[^}]*\}+/g, ''))
  return isUrl ? references.join(' ') : written
}

/** The position of the brace that closes the one before `from`; a `${` between opens another one. */
function closingBrace(text: string, from: number): number {
  let depth = 1
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '{' && text[at - 1] === '$') depth += 1
    if (text[at] === '}') depth -= 1
    if (depth === 0) return at
  }
  return -1
}

async function valueOf(
  expression: string,
  deps: SubstituteDeps,
  texts: string[],
  fail: (message: string) => void,
): Promise<string | undefined> {
  const written = quote(`\${${expression}}`, 120)
  const colon = expression.indexOf(':')
  const kind = expression.slice(0, Math.max(0, colon))
  const name = expression.slice(colon + 1).trim()
  if (kind === 'env' && name !== '') {
    const value = deps.env[name]
    if (value === undefined) fail(`${written}: the environment variable ${quote(name, 80)} is not set.`)
    // Node reads what is not UTF-8 as U+FFFD.
    if (value?.includes('\ufffd')) fail(`${written}: the environment variable is not UTF-8.`)
    return value?.replace(/\r?\n$/, '')
  }
  if (kind === 'file' && name !== '') {
    const path = name.includes('${') ? await expand(name, deps, texts, fail) : name
    try {
      return (await deps.readText(path)).replace(/\r?\n$/, '')
    } catch (error) {
      fail(`${written}: ${unreadable(error)}`)
      return undefined
    }
  }
  const meant = /^[A-Za-z_]\w*$/.test(expression) ? ` Did you mean "\${env:${expression}}"?` : ''
  fail(`${written} is neither \${env:NAME} nor \${file:PATH}.${meant}`)
  return undefined
}
