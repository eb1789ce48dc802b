// yaml-source.ts: parses the text of a config file into a tree in which every value has its line and column.
//
// YAML 1.2 with anchors, aliases and merge keys. The expansion of aliases is bounded (`aliasesMax`), so that
// a page of text cannot become gigabytes. Broken syntax gives problems and no tree: in a partial tree,
// options would be reported as missing that are not.

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { Document, Node, Pair, YAMLError } from 'yaml'

const aliasesMax = 1000
/** One missing quote makes an error of every line that follows. Only the first ones help. */
const syntaxErrorsMax = 20

export type Position = { line: number; column: number }

export type Keys = readonly (string | number)[]

export type YamlProblem = Position & { message: string }

export type YamlSource = {
  document: Document
  problems: readonly YamlProblem[]
  /** Whether the syntax is valid, so that the tree is complete. */
  sound: boolean
  /** The whole file as a plain value; throws RangeError for too many aliases. */
  plain(): unknown
  /** Drops the other keys of the root. `ops.listen` keeps only this option of `ops`. */
  keepOnly(keys: readonly string[]): void
  /** The node at a path, through aliases; undefined where there is none. */
  nodeAt(keys: Keys): Node | undefined
  /** The position of the key at the end of a path, or of its nearest parent that exists. */
  positionOf(keys: Keys): Position
  positionOfNode(node: Node): Position
}

export function parseYamlSource(text: string): YamlSource {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  const all = [...document.errors, ...document.warnings]
  const sound = document.errors.every(({ code }) => code === 'DUPLICATE_KEY')

  return { document, problems: problemsOf(all), sound, plain, keepOnly, nodeAt, positionOf, positionOfNode }

  function plain(): unknown {
    try {
      return document.toJS({ maxAliasCount: aliasesMax })
    } catch (error) {
      throw new RangeError(`The aliases of the file expand to more than ${aliasesMax} values.`, {
        cause: error,
      })
    }
  }

  function keepOnly(keys: readonly string[]): void {
    const root = document.contents
    if (!isMap(root)) return
    root.items = root.items.filter(({ key, value }) => {
      if (!isScalar(key)) return false
      const section = String(key.value)
      if (keys.includes(section)) return true
      const options = resolved(value)
      if (!keys.some((each) => each.startsWith(`${section}.`)) || !isMap(options)) return false
      options.items = options.items.filter(
        ({ key: option }) => isScalar(option) && keys.includes(`${section}.${String(option.value)}`),
      )
      return true
    })
  }

  function positionAt(offset: number): Position {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }

  function positionOfNode(node: Node): Position {
    return positionAt(node.range?.[0] ?? 0)
  }

  function problemsOf(errors: readonly YAMLError[]): YamlProblem[] {
    const problems: YamlProblem[] = []
    const seenLines = new Set<number>()
    for (const error of errors) {
      const position = positionAt(error.pos[0])
      // After the first error of a line the parser only guesses.
      if (seenLines.has(position.line) && error.code !== 'DUPLICATE_KEY') continue
      seenLines.add(position.line)
      problems.push({ ...position, message: sentenceFor(error, lineAt(position.line)) })
      if (problems.length === syntaxErrorsMax) break
    }
    return problems
  }

  function lineAt(line: number): string {
    return text.split('\n', line)[line - 1] ?? ''
  }

  function nodeAt(keys: Keys): Node | undefined {
    let node = resolved(document.contents)
    for (const key of keys) {
      node = resolved(childOf(node, key)?.value)
      if (!node) return undefined
    }
    return node
  }

  function positionOf(keys: Keys): Position {
    let node = resolved(document.contents)
    let offset = node?.range?.[0] ?? 0
    for (const key of keys) {
      const child = childOf(node, key)
      if (!child) break
      offset = child.at?.range?.[0] ?? offset
      node = resolved(child.value)
    }
    return positionAt(offset)
  }

  /** The target of an alias. An alias of itself does not resolve. */
  function resolved(node: unknown): Node | undefined {
    if (isAlias(node)) return node.resolve(document)
    return isMap(node) || isSeq(node) || isScalar(node) ? node : undefined
  }
}

/** A child, and the node at which its position is reported: its key in a map, itself in a list. */
function childOf(
  node: Node | undefined,
  key: string | number,
): { at: Node | undefined; value: unknown } | undefined {
  if (isSeq(node)) {
    const value = node.items[Number(key)]
    return value === undefined ? undefined : { at: value as Node, value }
  }
  if (!isMap(node)) return undefined
  // Of a duplicate key the last value counts.
  const pair = node.items.findLast(
    (candidate: Pair) => isScalar(candidate.key) && String(candidate.key.value) === String(key),
  )
  return pair ? { at: pair.key as Node, value: pair.value } : undefined
}

function sentenceFor({ code, message }: YAMLError, line: string): string {
  if (code === 'DUPLICATE_KEY') return 'this key occurs twice in one map. Keep one of them.'
  if (code === 'MULTIPLE_DOCS')
    return 'the file has more than one YAML document. Keep only the part before this "---".'
  if (code === 'TAG_RESOLVE_FAILED') return `${firstLine(message)}. The config uses no YAML tags ("!").`
  if (code === 'TAB_AS_INDENT') return 'the line is indented with a tab. YAML needs spaces.'
  const unquoted = /(^|[^"'])\$\{/.test(line) && /[{[]/.test(line.replace(/\$\{/g, ''))
  const hint = unquoted ? ' Inside { } or [ ] put it in quotes: "${env:NAME}".' : ''
  return `${firstLine(message).replace(/\.?$/, '.')}${hint}`
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text
}
