// Parses the AsyncAPI document that is the first argument, with the specification's own parser, and
// prints how many messages it has.
import { Parser, fromFile } from '@asyncapi/parser';

const { document, diagnostics } = await fromFile(new Parser(), process.argv[2]).parse();
const faults = diagnostics.filter((d) => d.severity <= 1); // errors and warnings
for (const d of faults.slice(0, 20)) console.error(`${d.path.join('/')}: ${d.code}: ${d.message}`);
if (faults.length > 0 || !document) process.exit(1);
console.log(`${document.allMessages().length} messages`);
