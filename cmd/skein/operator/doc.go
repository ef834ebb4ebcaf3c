// Package operator has the commands of those who run a Skein: the processes serve, gateway and
// demo, who may connect, the checks and repairs of what is stored, backups, archives and freezing.
//
// It may use all of Skein: many of its commands read the log itself, or the files of a store that
// no process uses. What someone does with threads, through the client, belongs in package user.
package operator
