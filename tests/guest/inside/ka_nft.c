/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka-nft: rules of nf_tables, for which busybox has no program.
 *
 *   ka-nft add      in one transaction: table "ka" with three sets and a chain
 *   ka-nft list     read all of them
 *   ka-nft delete   delete the table
 *
 * In the language of nft:
 *
 *   table ip ka {
 *       set one   { type ipv4_addr; elements = { 127.0.0.1, 10.9.0.1 } }
 *       set range { type ipv4_addr; flags interval;
 *                   elements = { 10.0.0.0-10.0.0.255 } }
 *       set pair  { type ipv4_addr . ipv4_addr; flags interval;
 *                   elements = { 10.0.0.0-10.0.0.255 . 10.0.0.0-10.0.0.255 } }
 *       chain in  { type filter hook input priority 0;
 *                   ip saddr @one counter accept
 *                   ip saddr @range counter accept
 *                   ip saddr . ip daddr @pair counter accept }
 *   }
 *
 * Runs inside the guest. Exit code: 0, 1 the kernel refused, 2 usage.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TABLE "ka"
#define CHAIN "in"
#define FILTER_PRIORITY 0
#define SADDR 12                    /* offsets in an IPv4 header */
#define DADDR 16
#define END_PAIR "\x0a\0\0\xff\x0a\0\0\xff"

/* Messages that are sent at once. */
static char out[8192];
static size_t used;
static struct nlmsghdr *message;

static void *append(size_t len)
{
    void *at = out + used;

    used += NLMSG_ALIGN(len);
    return at;
}

static void begin(uint16_t type, uint16_t flags, uint8_t family, uint16_t id)
{
    struct nfgenmsg *head;

    message = append(sizeof(*message));
    message->nlmsg_type = type;
    message->nlmsg_flags = NLM_F_REQUEST | flags;
    head = append(sizeof(*head));
    head->nfgen_family = family;
    head->res_id = htons(id);
}

static void end(void)
{
    message->nlmsg_len = out + used - (char *)message;
}

static void begin_nft(int type, uint16_t flags)
{
    begin(NFNL_SUBSYS_NFTABLES << 8 | type, flags, NFPROTO_IPV4, 0);
}

static void put(uint16_t type, const void *data, size_t len)
{
    struct nlattr *attr = append(NLA_HDRLEN);

    attr->nla_type = type;
    attr->nla_len = NLA_HDRLEN + len;
    memcpy(append(len), data, len);
}

static void put_text(uint16_t type, const char *text)
{
    put(type, text, strlen(text) + 1);
}

static void put_number(uint16_t type, uint32_t number)
{
    uint32_t big_endian = htonl(number);

    put(type, &big_endian, sizeof(big_endian));
}

static struct nlattr *nest(uint16_t type)
{
    struct nlattr *attr = append(NLA_HDRLEN);

    attr->nla_type = type | NLA_F_NESTED;
    return attr;
}

static void end_nest(struct nlattr *attr)
{
    attr->nla_len = out + used - (char *)attr;
}

/* --- sets ---------------------------------------------------------------- */

static void put_data(uint16_t type, const void *data, size_t len)
{
    struct nlattr *attr = nest(type);

    put(NFTA_DATA_VALUE, data, len);
    end_nest(attr);
}

/* Add a set. Its key is made of @fields fields of 4 bytes each. */
static void add_set(const char *name, uint32_t id, uint32_t flags, int fields)
{
    begin_nft(NFT_MSG_NEWSET, NLM_F_CREATE);
    put_text(NFTA_SET_TABLE, TABLE);
    put_text(NFTA_SET_NAME, name);
    put_number(NFTA_SET_ID, id);
    put_number(NFTA_SET_FLAGS, flags);
    put_number(NFTA_SET_KEY_TYPE, 0);
    put_number(NFTA_SET_KEY_LEN, 4 * fields);
    if (fields > 1) {
        struct nlattr *desc = nest(NFTA_SET_DESC);
        struct nlattr *concat = nest(NFTA_SET_DESC_CONCAT);

        while (fields--) {
            struct nlattr *field = nest(NFTA_LIST_ELEM);

            put_number(NFTA_SET_FIELD_LEN, 4);
            end_nest(field);
        }
        end_nest(concat);
        end_nest(desc);
    }
    end();
}

static struct nlattr *begin_elements(const char *set)
{
    begin_nft(NFT_MSG_NEWSETELEM, NLM_F_CREATE);
    put_text(NFTA_SET_ELEM_LIST_TABLE, TABLE);
    put_text(NFTA_SET_ELEM_LIST_SET, set);
    return nest(NFTA_SET_ELEM_LIST_ELEMENTS);
}

/* LAST is the end of the element's range, for sets with several fields. */
static void put_element(const char *key, const char *last, int fields,
                        uint32_t flags)
{
    struct nlattr *element = nest(NFTA_LIST_ELEM);

    if (flags) {
        put_number(NFTA_SET_ELEM_FLAGS, flags);
    }
    put_data(NFTA_SET_ELEM_KEY, key, 4 * fields);
    if (last) {
        put_data(NFTA_SET_ELEM_KEY_END, last, 4 * fields);
    }
    end_nest(element);
}

static void end_elements(struct nlattr *list)
{
    end_nest(list);
    end();
}

static void add_sets(void)
{
    struct nlattr *list;

    add_set("one", 1, 0, 1);
    list = begin_elements("one");
    put_element("\x7f\0\0\1", NULL, 1, 0);
    put_element("\x0a\x09\0\1", NULL, 1, 0);
    end_elements(list);
    add_set("range", 2, NFT_SET_INTERVAL, 1);
    list = begin_elements("range");
    put_element("\x0a\0\0\0", NULL, 1, 0);
    put_element("\x0a\0\1\0", NULL, 1, NFT_SET_ELEM_INTERVAL_END);
    end_elements(list);
    add_set("pair", 3, NFT_SET_INTERVAL | NFT_SET_CONCAT, 2);
    list = begin_elements("pair");
    put_element("\x0a\0\0\0\x0a\0\0\0", END_PAIR, 2, 0);
    end_elements(list);
}

/* --- rules --------------------------------------------------------------- */

static struct nlattr *begin_expression(const char *name, struct nlattr **data)
{
    struct nlattr *attr = nest(NFTA_LIST_ELEM);

    put_text(NFTA_EXPR_NAME, name);
    *data = nest(NFTA_EXPR_DATA);
    return attr;
}

static void end_expression(struct nlattr *attr, struct nlattr *data)
{
    end_nest(data);
    end_nest(attr);
}

static void put_payload(uint32_t at, uint32_t reg)
{
    struct nlattr *data, *attr = begin_expression("payload", &data);

    put_number(NFTA_PAYLOAD_DREG, reg);
    put_number(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    put_number(NFTA_PAYLOAD_OFFSET, at);
    put_number(NFTA_PAYLOAD_LEN, 4);
    end_expression(attr, data);
}

static void put_lookup(const char *set, uint32_t id)
{
    struct nlattr *data, *attr = begin_expression("lookup", &data);

    put_text(NFTA_LOOKUP_SET, set);
    put_number(NFTA_LOOKUP_SET_ID, id);
    put_number(NFTA_LOOKUP_SREG, NFT_REG32_00);
    end_expression(attr, data);
}

static void put_counter(void)
{
    struct nlattr *data, *attr = begin_expression("counter", &data);

    end_expression(attr, data);
}

static void put_accept(void)
{
    struct nlattr *data, *attr = begin_expression("immediate", &data);
    struct nlattr *value, *verdict;

    put_number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    value = nest(NFTA_IMMEDIATE_DATA);
    verdict = nest(NFTA_DATA_VERDICT);
    put_number(NFTA_VERDICT_CODE, NF_ACCEPT);
    end_nest(verdict);
    end_nest(value);
    end_expression(attr, data);
}

static void add_rule(const char *set, uint32_t id, int fields)
{
    struct nlattr *list;

    begin_nft(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    put_text(NFTA_RULE_TABLE, TABLE);
    put_text(NFTA_RULE_CHAIN, CHAIN);
    list = nest(NFTA_RULE_EXPRESSIONS);
    put_payload(SADDR, NFT_REG32_00);
    if (fields > 1) {
        put_payload(DADDR, NFT_REG32_01);
    }
    put_lookup(set, id);
    put_counter();
    put_accept();
    end_nest(list);
    end();
}

static void add_chain(void)
{
    struct nlattr *hook;

    begin_nft(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    put_text(NFTA_CHAIN_TABLE, TABLE);
    put_text(NFTA_CHAIN_NAME, CHAIN);
    put_text(NFTA_CHAIN_TYPE, "filter");
    hook = nest(NFTA_CHAIN_HOOK);
    put_number(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_IN);
    put_number(NFTA_HOOK_PRIORITY, FILTER_PRIORITY);
    end_nest(hook);
    end();
}

/* --- what is sent -------------------------------------------------------- */

static void put_batch(uint16_t type)
{
    begin(type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    end();
}

static void add(void)
{
    put_batch(NFNL_MSG_BATCH_BEGIN);
    begin_nft(NFT_MSG_NEWTABLE, NLM_F_CREATE);
    put_text(NFTA_TABLE_NAME, TABLE);
    end();
    add_sets();
    add_chain();
    add_rule("one", 1, 1);
    add_rule("range", 2, 1);
    add_rule("pair", 3, 2);
    message->nlmsg_flags |= NLM_F_ACK;
    put_batch(NFNL_MSG_BATCH_END);
}

static void delete(void)
{
    put_batch(NFNL_MSG_BATCH_BEGIN);
    begin_nft(NFT_MSG_DELTABLE, NLM_F_ACK);
    put_text(NFTA_TABLE_NAME, TABLE);
    end();
    put_batch(NFNL_MSG_BATCH_END);
}

/* Return the error of a list of messages, 0 if one is an end without an error,
 * and 1 if none is an end. */
static int check_answer(const struct nlmsghdr *head, ssize_t len)
{
    for (; NLMSG_OK(head, len); head = NLMSG_NEXT(head, len)) {
        if (head->nlmsg_type == NLMSG_ERROR) {
            return ((const struct nlmsgerr *)NLMSG_DATA(head))->error;
        }
        if (head->nlmsg_type == NLMSG_DONE) {
            return *(const int *)NLMSG_DATA(head);
        }
    }
    return 1;
}

/* Send what is there; return false and set errno if the kernel refused. */
static int talk(int s)
{
    static char in[1 << 16] __attribute__((aligned(8)));
    int error = 1;

    if (send(s, out, used, 0) < 0) {
        return 0;
    }
    while (error == 1) {
        ssize_t len = recv(s, in, sizeof(in), 0);

        if (len <= 0) {
            return 0;
        }
        error = check_answer((struct nlmsghdr *)in, len);
    }
    errno = -error;
    return !error;
}

static int list(int s)
{
    static const uint8_t what[] = {
        NFT_MSG_GETTABLE, NFT_MSG_GETSET, NFT_MSG_GETCHAIN, NFT_MSG_GETRULE,
    };
    size_t i;

    for (i = 0; i < sizeof(what); i++) {
        used = 0;
        begin_nft(what[i], NLM_F_DUMP);
        end();
        if (!talk(s)) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    /* An answer that does not come, because a fault ate it, is an error. */
    struct timeval wait = { .tv_usec = 300000 };
    int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), good;

    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (!strcmp(what, "list")) {
        good = list(s);
    } else if (!strcmp(what, "add") || !strcmp(what, "delete")) {
        (*what == 'a' ? add : delete)();
        good = talk(s);
    } else {
        fprintf(stderr, "usage: ka-nft add|list|delete\n");
        return 2;
    }
    if (!good) {
        perror("ka-nft");
    }
    return !good;
}
